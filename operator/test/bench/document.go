package main

import (
	"fmt"
	"os"
	"strings"
)

// paste puts text between the markers "<!-- name:begin -->" and "<!-- name:end -->" of a file.
func paste(file, name, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	before, rest, found := strings.Cut(string(old), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s does not have the lines %q and %q", file, strings.TrimSpace(begin), end)
	}
	return os.WriteFile(file, []byte(before+begin+text+end+after), 0o644)
}
