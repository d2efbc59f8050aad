package pvcbackup_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

const module = "example.com/pvcbackup/"

// groups are what a budget may forbid.
var groups = map[string][]string{
	"Kubernetes": {"k8s.io/", "sigs.k8s.io/"},
	"clouds":     {"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go", "cloud.google.com/go", "github.com/Azure/azure-sdk-for-go"},
	"engine": {module + "backup/repo", module + "backup/archiver", module + "backup/restorer", module + "backup/maintain",
		module + "backup/blockdev", module + "backup/browse", module + "backup/copier", module + "backup/cli"},
	"blobstore": {module + "blobstore"},
}

// budgets are what packages never link, with all below them unless a line of their own says otherwise. Whoever takes one
// package does not get the others. Nothing but examples and tools may link the operator.
var budgets = []struct {
	packages []string
	never    []string
}{
	{[]string{"schedule"}, []string{"Kubernetes", "clouds", "engine", "blobstore"}},
	{[]string{"blobstore", "blobstore/drivers/file", "blobstore/drivers/mem"}, []string{"Kubernetes", "clouds", "engine"}},
	{[]string{"blobstore/drivers"}, []string{"Kubernetes", "engine"}},
	{[]string{"backup/contract"}, []string{"Kubernetes", "clouds", "engine", "blobstore"}},
	{[]string{
		"backup/repo", "backup/archiver", "backup/restorer", "backup/maintain", "backup/blockdev", "backup/browse", "backup/copier",
		"backup/cli", "backup/internal",
	}, []string{"Kubernetes", "clouds"}},
	{[]string{"reconcilekit", "snapshot"}, []string{"clouds", "engine", "blobstore"}},
	{[]string{"backup", "operator"}, []string{"clouds", "engine", "blobstore"}},
	{[]string{"operator/cmd/pvcbackup"}, []string{"Kubernetes"}},
}

// pkg is what "go list" tells of a package.
type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func (p pkg) name() string { return strings.TrimPrefix(p.ImportPath, module) }

func packages(t *testing.T) []pkg {
	t.Helper()
	list, err := listed()
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list
}

// listed asks once for all tests.
var listed = sync.OnceValues(func() (list []pkg, err error) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...").Output()
	if err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
})

// budgetOf returns what a package never links: the line of the longest name counts.
func budgetOf(name string) (never []string, found bool) {
	longest := ""
	for _, budget := range budgets {
		for _, p := range budget.packages {
			if (name == p || strings.HasPrefix(name, p+"/")) && len(p) > len(longest) {
				longest, never = p, budget.never
			}
		}
	}
	return never, longest != ""
}

// outside are packages without a budget: those that show or test everything together.
func outside(name string) bool {
	return name == strings.TrimSuffix(module, "/") || strings.HasPrefix(name, "examples/") || strings.HasPrefix(name, "operator/test/")
}

func TestPackagesLinkOnlyWhatTheyPromise(t *testing.T) {
	for _, p := range packages(t) {
		never, found := budgetOf(p.name())
		if !found {
			if !outside(p.name()) {
				t.Errorf("%s has no budget", p.name())
			}
			continue
		}
		for _, group := range never {
			for _, prefix := range groups[group] {
				for _, dependency := range p.Deps {
					// An identifier is not the engine.
					if strings.HasPrefix(dependency, prefix) && dependency != module+"backup/repo/id" {
						t.Errorf("%s links %s: %s", p.name(), group, dependency)
					}
				}
			}
		}
	}
}

func TestNothingImportsTheOperator(t *testing.T) {
	for _, p := range packages(t) {
		if outside(p.name()) || strings.HasPrefix(p.name(), "operator/") {
			continue
		}
		for _, imported := range p.Imports {
			if strings.HasPrefix(imported, module+"operator") {
				t.Errorf("%s imports %s", p.name(), imported)
			}
		}
	}
}

func TestTheOverviewHasEveryPackageAndBudget(t *testing.T) {
	text, err := os.ReadFile("docs/packages.md")
	require.NoError(t, err)
	overview, table, found := strings.Cut(string(text), "| package | never links |\n| --- | --- |\n")
	require.True(t, found)
	var want strings.Builder
	for _, budget := range budgets {
		want.WriteString("| `" + strings.Join(budget.packages, "`, `") + "` | " + strings.Join(budget.never, ", ") + " |\n")
	}
	if diff := cmp.Diff(want.String(), table); diff != "" {
		t.Errorf("docs/packages.md (-want +got):\n%s", diff)
	}
	for _, p := range packages(t) {
		parts := strings.Split(p.name(), "/")
		if outside(p.name()) || slices.Contains(parts, "internal") || slices.Contains(parts, "drivers") || slices.Contains(parts, "cmd") {
			continue
		}
		if !strings.Contains(overview, "`"+p.name()+"`") && !strings.Contains(overview, "(../"+p.name()+")") {
			t.Errorf("docs/packages.md does not name %s", p.name())
		}
	}
}
