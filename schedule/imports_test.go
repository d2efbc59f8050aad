package schedule_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Embedders get the standard library and the cron parser, and nothing else.
func TestOnlyTheCronParserIsImported(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./...").Output()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		"github.com/robfig/cron/v3",
		"example.com/pvcbackup/schedule",
		"example.com/pvcbackup/schedule/keep",
	}, strings.Fields(string(out)))
}

func TestTheCronParserIsNotPartOfTheAPI(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var users []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, imported := range file.Imports {
			if imported.Path.Value != `"github.com/robfig/cron/v3"` {
				continue
			}
			users = append(users, name)
			ast.Inspect(file, func(n ast.Node) bool {
				if decl, ok := n.(*ast.FuncDecl); ok {
					require.False(t, decl.Name.IsExported(), "%s is exported beside the parser", decl.Name)
				}
				if spec, ok := n.(*ast.TypeSpec); ok {
					require.False(t, spec.Name.IsExported(), "%s is exported beside the parser", spec.Name)
				}
				return true
			})
		}
	}
	require.Equal(t, []string{"field.go"}, users)
}
