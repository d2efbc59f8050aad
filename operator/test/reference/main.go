// Command reference writes the pages of the documentation that follow from the code: metrics.md and rbac.md.
//
// # Minimal use
//
//	go run ./operator/test/reference docs
//
// # Guarantees
//
// A metric that no code describes, and a right of the operator that no package asks for, end it with an error.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: go run ./operator/test/reference FOLDER, in the root of the repository")
	}
	for name, page := range map[string]func() (string, error){"metrics.md": metricsPage, "rbac.md": rbacPage} {
		text, err := page()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(args[0], name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
