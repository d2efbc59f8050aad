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
	// oneSeries refuses to choose among snapshots of several hosts or paths.
	oneSeries bool
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
	if s.oneSeries {
		if err := oneSeries(found); err != nil {
			return repo.SnapshotInfo{}, err
		}
	}
	return found[s.offset], nil
}

// oneSeries names the series if there are several: the newest of them all is hardly ever what is meant.
func oneSeries(found []repo.SnapshotInfo) error {
	var names []string
	for _, s := range found {
		if name := fmt.Sprintf("host %.100q path %.200q", s.Hostname, strings.Join(s.Paths, ",")); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) < 2 {
		return nil
	}
	return usage(fmt.Errorf("the latest of what? name one with --host and --path-filter: %s", strings.Join(names, "; ")))
}

func byID(snapshots []repo.SnapshotInfo, prefix string) (repo.SnapshotInfo, error) {
	var found []repo.SnapshotInfo
	for _, candidate := range snapshots {
		if strings.HasPrefix(candidate.ID.String(), prefix) {
			found = append(found, candidate)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return repo.SnapshotInfo{}, because(contract.ReasonSnapshotNotFound, fmt.Errorf(
			"none of the repository's %d snapshots has an ID that starts with %.64q", len(snapshots), prefix))
	default:
		return repo.SnapshotInfo{}, because(contract.ReasonInvalidRequest, fmt.Errorf(
			"%d snapshots have an ID that starts with %.64q: write more of it", len(found), prefix))
	}
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
