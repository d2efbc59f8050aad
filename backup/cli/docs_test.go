package cli

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestEveryCommandAndFlagIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli.md")
	require.NoError(t, err)
	sections := map[string]string{}
	for _, section := range strings.Split("\n"+string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		sections[strings.Trim(title, "`")] = body
	}
	root := newTool(Options{Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" }}).root()
	documented := func(section string, flags *pflag.FlagSet) {
		flags.VisitAll(func(flag *pflag.Flag) {
			if body := sections[section]; !strings.Contains(body, "`--"+flag.Name+"`") && !strings.Contains(body, "`--"+flag.Name+" ") {
				t.Errorf("docs/cli.md does not have --%s in its section %q", flag.Name, section)
			}
		})
	}
	documented("For every command", root.PersistentFlags())
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		section := strings.Fields(strings.TrimPrefix(cmd.CommandPath(), "pvcbackup "))[0]
		if sections[section] == "" {
			t.Errorf("docs/cli.md has no section %q", section)
		}
		documented(section, cmd.LocalNonPersistentFlags())
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	for _, cmd := range root.Commands() {
		visit(cmd)
	}
}
