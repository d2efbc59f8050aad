package all

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryDriverIsThere(t *testing.T) {
	want := []string{"azblob", "file", "gs", "mem", "s3"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(Openers()))); diff != "" {
		t.Fatal(diff)
	}
}
