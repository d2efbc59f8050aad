package naming_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/snapshot/internal/naming"
)

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

func FuzzNameIsADNSLabelAndTellsInputsApart(f *testing.F) {
	f.Add("backup", "uid", "slot", "other")
	f.Add("", "", "-", "--")
	f.Add("Ünïcode", strings.Repeat("x", 200), "a.b", "a-b")
	f.Add("\xff", "\x00", "9", "-9-")
	f.Fuzz(func(t *testing.T, prefix, a, b, c string) {
		name := naming.Name(prefix, a, b)
		require.Regexp(t, dnsLabel, name)
		require.LessOrEqual(t, len(name), 63)
		require.Equal(t, name, naming.Name(prefix, a, b))
		if b != c {
			require.NotEqual(t, name, naming.Name(prefix, a, c))
		}
		require.NotEqual(t, name, naming.Name(prefix, a+b))
	})
}
