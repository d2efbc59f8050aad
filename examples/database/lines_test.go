package main

import (
	"bufio"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBackupsTakeFewLines counts what the operator has because of its backups: the whole of backups.go, and every line
// elsewhere that names them. Comments and blank lines do not count.
func TestBackupsTakeFewLines(t *testing.T) {
	n := len(code(t, "backups.go"))
	names := regexp.MustCompile(`(?i)backup|scheduled`)
	for _, file := range []string{"database.go", "main.go"} {
		for _, line := range code(t, file) {
			if names.MatchString(line) {
				n++
			}
		}
	}
	t.Logf("backups take %d lines of code", n)
	require.Less(t, n, 60)
}

func code(t *testing.T, file string) (lines []string) {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	for scanner := bufio.NewScanner(f); scanner.Scan(); {
		if line := strings.TrimSpace(scanner.Text()); line != "" && !strings.HasPrefix(line, "//") {
			lines = append(lines, line)
		}
	}
	require.NotEmpty(t, lines)
	return lines
}
