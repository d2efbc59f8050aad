// Package matrix holds the page of the documentation that says which store keeps which promise against the conformance
// tests of the drivers.
package matrix

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/blobstore/blobtest"
)

// Page is where the table is, as seen from a driver's folder.
const Page = "../../../docs/stores.md"

// Check runs the conformance suite, and compares the column of that name with what the suite holds the store to: yes, or
// what caps declare instead.
func Check(t *testing.T, column string, open func(t testing.TB) blobtest.Store, caps blobtest.Caps) {
	t.Helper()
	text, err := os.ReadFile(Page)
	require.NoError(t, err)
	gaps, want := caps.Gaps(), map[string]string{}
	for _, promise := range blobtest.Promises() {
		want[promise] = "yes"
		if gap := gaps[promise]; gap != "" {
			want[promise] = gap
		}
	}
	if diff := cmp.Diff(want, cells(string(text), column)); diff != "" {
		t.Errorf("docs/stores.md, column %q (-want +got):\n%s", column, diff)
	}
	blobtest.Run(t, open, caps)
}

// cells returns a column of the page's table by the names of its rows.
func cells(page, column string) map[string]string {
	found, at := map[string]string{}, -1
	for line := range strings.Lines(page) {
		fields := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range fields {
			fields[i] = strings.Trim(strings.TrimSpace(fields[i]), "`")
		}
		switch {
		case fields[0] == "promise":
			at = slices.Index(fields, column)
		case at > 0 && at < len(fields) && strings.HasPrefix(line, "| `"):
			found[fields[0]] = fields[at]
		}
	}
	return found
}
