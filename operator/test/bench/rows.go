package main

import "slices"

// row is a line of the tables: one kind of work, and by how much it is to be faster than the peers.
type row struct {
	key, title string
	// overRestic and overKopia are the factors to reach; 0: none.
	overRestic, overKopia float64
	// sizeOverRestic is how large the repository may be, as a multiple of restic's; 0: it is not looked at.
	sizeOverRestic float64
}

// rows are in the order of the table.
var rows = []row{
	{"random", "first backup, 1 GiB random", 3.5, 1.8, 1.05},
	{"text", "first backup, 1 GiB text", 2, 1.15, 1.18},
	{"small", "first backup, 50,000 small files", 3, 2.5, 1.05},
	{"again", "again, nothing changed, 50,000 files", 5, 1.7, 0},
	{"again-many", "again, nothing changed, 500,000 files", 8, 3, 0},
	{"changed", "again, 1 % of 50,000 files changed", 4, 2, 0},
	{"restore", "restore 2 GiB", 2, 2, 0},
	{"restore-small", "restore 50,000 small files", 2, 2, 0},
	{"check", "check --read-data of 2 GiB", 1.5, 0, 0},
}

// sizeOverKopia is how large every repository may be, as a multiple of kopia's.
const sizeOverKopia = 1.05

// maxMemory is how much of it every row may take, in bytes.
const maxMemory = 256 * mib

// phase is a stretch of work on one corpus: repositories are made, measured and removed together.
type phase struct {
	rows []string
	// sources are the corpora that are needed, and source the directory to back up, below that of all corpora.
	sources []string
	source  string
	// fresh makes new repositories in every run, because the first backup is measured.
	fresh bool
	steps []step
}

// step is what every tool does in turn.
type step struct {
	row string // empty: it is needed and not measured
	do  action
}

type action int

const (
	doBackup action = iota
	doTouch         // once for all tools: it changes the source
	doRestore
	doCheck
)

var phases = []phase{
	{rows: []string{"random"}, sources: []string{"random"}, source: "big/random", fresh: true, steps: []step{{"random", doBackup}}},
	{rows: []string{"text"}, sources: []string{"text"}, source: "big/text", fresh: true, steps: []step{{"text", doBackup}}},
	{
		rows: []string{"small", "again", "changed", "restore-small"}, sources: []string{"small"}, source: "small", fresh: true,
		steps: []step{{"small", doBackup}, {"again", doBackup}, {"", doTouch}, {"changed", doBackup}, {"restore-small", doRestore}},
	},
	{
		rows: []string{"restore", "check"}, sources: []string{"random", "text"}, source: "big",
		steps: []step{{"restore", doRestore}, {"check", doCheck}},
	},
	{rows: []string{"again-many"}, sources: []string{"many"}, source: "many", steps: []step{{"again-many", doBackup}}},
}

// wanted reports whether a phase has one of the rows.
func (p phase) wanted(keys []string) bool {
	return slices.ContainsFunc(p.rows, func(key string) bool { return slices.Contains(keys, key) })
}

// last returns how many steps are needed for the rows that are wanted.
func (p phase) last(keys []string) int {
	for i := len(p.steps) - 1; i >= 0; i-- {
		if slices.Contains(keys, p.steps[i].row) {
			return i + 1
		}
	}
	return 0
}

func rowOf(key string) row {
	return rows[slices.IndexFunc(rows, func(r row) bool { return r.key == key })]
}

func keysOf(all []row) []string {
	var keys []string
	for _, r := range all {
		keys = append(keys, r.key)
	}
	return keys
}
