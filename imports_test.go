package pvcbackup_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "example.com/pvcbackup/"

var (
	kubernetes = []string{"k8s.io/", "sigs.k8s.io/"}
	clouds     = []string{"github.com/aws/aws-sdk-go-v2", "cloud.google.com/go", "github.com/Azure/azure-sdk-for-go"}
	engine     = []string{module + "backup/repo", module + "backup/archiver", module + "backup/restorer", module + "backup/maintain", module + "backup/cli"}
	operator   = []string{module + "operator"}
)

// TestPackagesLinkOnlyWhatTheyPromise holds the import budgets: who takes one package does not get the others.
func TestPackagesLinkOnlyWhatTheyPromise(t *testing.T) {
	for name, forbidden := range map[string][][]string{
		"schedule":               {kubernetes, clouds, engine, operator},
		"schedule/keep":          {kubernetes, clouds, engine, operator},
		"blobstore":              {kubernetes, clouds, engine, operator},
		"blobstore/drivers/file": {kubernetes, clouds, engine, operator},
		"blobstore/drivers/all":  {kubernetes, engine, operator},
		"backup/contract":        {kubernetes, clouds, engine, operator},
		"backup/repo":            {kubernetes, clouds, operator},
		"backup/archiver":        {kubernetes, clouds, operator},
		"backup/restorer":        {kubernetes, clouds, operator},
		"backup/maintain":        {kubernetes, clouds, operator},
		"backup/cli":             {kubernetes, clouds, operator},
		"operator/cmd/pvcbackup": {kubernetes},
		"reconcilekit":           {clouds, engine, operator},
		"snapshot":               {clouds, engine, operator},
		"snapshot/stage":         {clouds, engine, operator},
		"backup":                 {clouds, engine, operator, {module + "blobstore"}},
		"backup/jobmover":        {clouds, engine, operator, {module + "blobstore"}},
		"backup/scheduled":       {clouds, engine, operator, {module + "blobstore"}},
		"backup/restore":         {clouds, engine, operator, {module + "blobstore"}},
		"operator/app":           {clouds, engine, {module + "blobstore"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./"+name).Output()
			require.NoError(t, err)
			for dependency := range strings.Lines(string(out)) {
				for _, prefix := range slices.Concat(forbidden...) {
					if dependency = strings.TrimSpace(dependency); strings.HasPrefix(dependency, prefix) && dependency != module+"backup/repo/id" {
						t.Errorf("%s links %s", name, dependency)
					}
				}
			}
		})
	}
}

// TestNothingImportsTheOperator holds the direction of the arrows.
func TestNothingImportsTheOperator(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		importer, imports, _ := strings.Cut(line, " ")
		outside := !strings.HasPrefix(importer, module+"operator") && !strings.HasPrefix(importer, module+"examples/")
		if outside && strings.Contains(imports, module+"operator") {
			t.Errorf("%s imports the operator", importer)
		}
	}
}
