package id

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestParseAcceptsExactlyWhatStringWrites(t *testing.T) {
	want := Hash([]byte("data"))
	got, err := Parse(want.String())
	require.NoError(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, text := range map[string]string{
		"empty":     "",
		"short":     want.String()[1:],
		"long":      want.String() + "0",
		"uppercase": strings.ToUpper(Hash([]byte("data")).String()),
		"not hex":   strings.Repeat("g", 64),
		"huge":      strings.Repeat("a", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(text)
			require.Error(t, err)
			if len(err.Error()) > 200 {
				t.Errorf("the error repeats the whole input: %d characters", len(err.Error()))
			}
		})
	}
}

func TestJSONIsAStringOfHex(t *testing.T) {
	want := []ID{Hash([]byte("a")), {}}
	text, err := json.Marshal(want)
	require.NoError(t, err)
	var got []ID
	require.NoError(t, json.Unmarshal(text, &got))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	require.Error(t, json.Unmarshal([]byte(`["xyz"]`), &got))
}

func FuzzParse(f *testing.F) {
	f.Add(Hash(nil).String())
	f.Add("00")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := Parse(text)
		if err == nil && parsed.String() != text {
			t.Fatalf("Parse(%q).String() = %q", text, parsed.String())
		}
	})
}
