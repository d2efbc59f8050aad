package pvcbackup_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/blobstore/blobtest"
)

// block is a file in the guide: its name in a line of its own, then its text.
var block = regexp.MustCompile("(?m)^`([a-z/]+\\.go)`:\n\n```go\n((?s:.*?))```$")

// TestTheGuideForEmbeddersBuildsFromAnEmptyModule follows docs/embedding.md, offline.
func TestTheGuideForEmbeddersBuildsFromAnEmptyModule(t *testing.T) {
	guide, err := os.ReadFile("docs/embedding.md")
	require.NoError(t, err)
	root, err := os.Getwd()
	require.NoError(t, err)
	generate, err := blobtest.Tool("controller-gen")
	require.NoError(t, err)
	dir := t.TempDir()
	names := map[string]bool{}
	for _, m := range block.FindAllStringSubmatch(string(guide), -1) {
		name, text := m[1], m[2]
		names[name] = true
		tested, err := os.ReadFile(filepath.Join("examples/database", name))
		require.NoError(t, err)
		require.Equal(t, string(tested), text, "%s in the guide is not the one that is tested", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	require.Len(t, names, 4)
	require.Equal(t, strings.Count(string(guide), "```go"), len(names), "a block has no name")

	// What "go mod tidy" would find out on the network.
	sums, err := os.ReadFile("go.sum")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644))
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s %v: %s", name, args, out)
	}
	run("go", "mod", "init", "example.org/orders")
	run("go", "mod", "edit", "-require=example.com/pvcbackup@v0.0.0", "-replace=example.com/pvcbackup="+root)
	run(generate, "object", "crd", "paths=.", "output:crd:dir=crd")
	run("go", "vet", "./...")
	require.FileExists(t, filepath.Join(dir, "crd", "databases.example.com_databases.yaml"))
}

var link = regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	var pages []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != "." {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s leads nowhere: %s", page, m[1])
			}
		}
	}
}
