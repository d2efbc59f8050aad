package commit

import (
	"slices"
	"testing"
	"time"

	"example.com/pvcbackup/backup/repo"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestParentSelectionSkipsOthersNewerOnesAndTheUnusable(t *testing.T) {
	slot := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	sn := func(n int, host, path string, tags ...string) repo.SnapshotInfo {
		return repo.SnapshotInfo{ID: repo.ID{byte(n)}, Snapshot: repo.Snapshot{
			Time: slot.Add(time.Duration(n) * time.Hour), Hostname: host, Paths: []string{path}, Tags: tags,
		}}
	}
	all := []repo.SnapshotInfo{
		sn(1, "cluster", "/ns/claim"), sn(2, "cluster", "/ns/claim", "fine"), sn(3, "other", "/ns/claim"),
		sn(4, "cluster", "/ns/other"), sn(5, "cluster", "/ns/claim", "x", "partial"), sn(9, "cluster", "/ns/claim"),
	}
	c := Choice{Host: "cluster", Path: "/ns/claim", Time: slot.Add(8 * time.Hour), Usable: func(tags []string) bool {
		return !slices.Contains(tags, "partial")
	}}
	if diff := cmp.Diff(repo.ID{2}, c.latest(all).ID); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	require.Nil(t, c.latest(all[2:]))
}
