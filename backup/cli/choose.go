package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/repo"
)

// selection says which snapshot is meant.
type selection struct {
	// id is a full ID or a unique prefix; empty chooses by the rest.
	id string
	// host and path are compared if they are not empty, tags must all be there.
	host, path string
	tags       []string
	// asOf, if set, leaves out what is newer.
	asOf time.Time
	// offset goes back that many from the newest.
	offset int
}

// choose returns the snapshot that is meant: by ID any of the repository's, else the newest complete one of the series.
func (s selection) choose(snapshots []repo.SnapshotInfo) (repo.SnapshotInfo, error) {
	if s.id != "" {
		return byID(snapshots, s.id)
	}
	match := mine(s.host, s.path)
	var found []repo.SnapshotInfo
	for _, candidate := range snapshots {
		if match(&candidate.Snapshot) && archiver.Complete(candidate.Tags) && hasTags(candidate.Tags, s.tags) &&
			(s.asOf.IsZero() || !candidate.Time.After(s.asOf)) {
			found = append(found, candidate)
		}
	}
	slices.SortStableFunc(found, func(a, b repo.SnapshotInfo) int { return b.Time.Compare(a.Time) })
	if s.offset < 0 || s.offset >= len(found) {
		return repo.SnapshotInfo{}, because(contract.ReasonSnapshotNotFound, fmt.Errorf(
			"of the repository's %d snapshots %d are complete and match %s, and offset %d asks for one more", len(snapshots), len(found), s, s.offset))
	}
	return found[s.offset], nil
}

func byID(snapshots []repo.SnapshotInfo, prefix string) (repo.SnapshotInfo, error) {
	var found []repo.SnapshotInfo
	for _, candidate := range snapshots {
		if strings.HasPrefix(candidate.ID.String(), prefix) {
			found = append(found, candidate)
		}
	}
	if len(found) != 1 {
		return repo.SnapshotInfo{}, because(contract.ReasonSnapshotNotFound, fmt.Errorf(
			"%d of the repository's %d snapshots have an ID that starts with %.64q", len(found), len(snapshots), prefix))
	}
	return found[0], nil
}

func hasTags(tags, want []string) bool {
	for _, tag := range want {
		if !slices.Contains(tags, tag) {
			return false
		}
	}
	return true
}

// String describes the selection for messages.
func (s selection) String() string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, fmt.Sprintf("%s %.200q", name, value))
		}
	}
	add("host", s.host)
	add("path", s.path)
	add("tags", strings.Join(s.tags, ","))
	if !s.asOf.IsZero() {
		add("time at most", s.asOf.Format(time.RFC3339))
	}
	if len(parts) == 0 {
		return "anything"
	}
	return strings.Join(parts, ", ")
}
