package archiver

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
	"time"

	"example.com/pvcbackup/backup/internal/chunker"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
)

// Chunker names a way of cutting files. The zero value lets the parent decide: what it used is used again, one
// written by restic means Rabin, and without a parent it is Gear.
type Chunker = chunker.Kind

// The ways of cutting files.
const (
	Gear  = chunker.Gear
	Rabin = chunker.Rabin
	Fixed = chunker.Fixed
)

// Unreadable says what becomes of a run that could not read everything.
type Unreadable uint8

const (
	// FailOnUnreadable ends the run with an UnreadableError, without a snapshot.
	FailOnUnreadable Unreadable = iota
	// KeepPartial commits what could be read, in a snapshot tagged TagPartial.
	KeepPartial
)

// Verify says how much is read back before the snapshot is committed. Sizes and trees always are.
type Verify struct {
	// SampleBlobs is how many packs that the run wrote, and how many data blobs of the snapshot, are read back by
	// chance. 0: 8 of each. Negative: none.
	SampleBlobs int
}

// Options refines Backup. Host and Path are required; the rest has defaults.
type Options struct {
	// Host and Path (absolute) say whose snapshot it is; parents are chosen by them.
	Host, Path string
	// Tags are added to the snapshot. None may have a comma or be one that this package sets.
	Tags []string
	// Time is the snapshot's. Zero: now.
	Time time.Time
	// RunName makes the commit happen once for the name; see repo.Repository.CommitRun. Empty: every call commits.
	RunName string
	// ProgramVersion is recorded, for example "pvcbackup 1.2.3".
	ProgramVersion string

	// Wrapper is the name of the directory that stands for the source. Empty: "data".
	Wrapper string
	// Parent is the snapshot to compare with. Zero: the latest complete one with the same Host and Path.
	Parent repo.ID
	// NoParent reads everything.
	NoParent bool
	// Excludes are patterns as of path.Match. One without a slash is matched with the name of every entry, one with a
	// slash with the whole path below the source. What matches is left out, directories with all that is in them.
	Excludes []string
	// OneFileSystem stores directories on other filesystems without their content.
	OneFileSystem bool
	// AccessTimes records the times of last access. They make every tree new.
	AccessTimes bool
	// Unreadable is what to do about files that cannot be read.
	Unreadable Unreadable
	// RefuseEmpty makes an empty source an error, ErrEmpty.
	RefuseEmpty bool

	// Chunker and FixedSize (bytes, for Fixed; 0: 1 MiB) say how files are cut.
	Chunker   Chunker
	FixedSize int
	// Compression is the effort; the zero value is repo.CompressFastest.
	Compression repo.Compression
	// PackSize is as in repo.WriterOptions.
	PackSize int
	// ReadConcurrency is how many files are read at once. 0: twice the number of CPUs.
	ReadConcurrency int
	// MemoryBudget bounds all buffers, in bytes; the index comes on top. 0: 176 MiB. Below 64 MiB it is exceeded.
	MemoryBudget int64
	// Verify is what is read back before the commit.
	Verify Verify

	// Progress is called about once a ProgressInterval (0: one second), and once at the end of reading, by one
	// goroutine at a time. nil: not called.
	Progress         func(Progress)
	ProgressInterval time.Duration
	// CountTotals walks the source once more, beside everything else, so that Progress knows the totals. A run that is over
	// within a ProgressInterval does without.
	CountTotals bool
}

// Progress is how far a run has come. Sizes are in bytes of the source.
type Progress struct {
	Files, Dirs, Bytes uint64
	// TotalFiles and TotalBytes are zero without CountTotals, and until everything has been counted.
	TotalFiles, TotalBytes uint64
	// Stored is how much has been added to the repository, in bytes, compressed.
	Stored uint64
}

const (
	defaultBudget  = 176 << 20
	defaultWrapper = "data"
	defaultSample  = 8
)

var errOption = errors.New("invalid backup option")

func (o Options) withDefaults() (Options, error) {
	fail := func(field string, value any, advice string) (Options, error) {
		return o, fmt.Errorf("%w: %s is %q: %s", errOption, field, value, advice)
	}
	if o.Wrapper == "" {
		o.Wrapper = defaultWrapper
	}
	if o.Time.IsZero() {
		o.Time = time.Now()
	}
	if o.ReadConcurrency <= 0 {
		o.ReadConcurrency = 2 * runtime.GOMAXPROCS(0)
	}
	if o.MemoryBudget <= 0 {
		o.MemoryBudget = defaultBudget
	}
	if o.Verify.SampleBlobs == 0 {
		o.Verify.SampleBlobs = defaultSample
	}
	if o.ProgressInterval <= 0 {
		o.ProgressInterval = time.Second
	}
	switch {
	case o.Host == "":
		return fail("host", o.Host, "say whose snapshot it is")
	case !path.IsAbs(o.Path) || path.Clean(o.Path) != o.Path:
		return fail("path", o.Path, "use a clean absolute path such as /namespace/claim")
	case !tree.ValidName(o.Wrapper):
		return fail("wrapper", o.Wrapper, "use the name of a directory")
	case o.NoParent && !o.Parent.IsZero():
		return fail("parent", o.Parent.Short(), "either name a parent or refuse one")
	}
	for _, t := range o.Tags {
		if t == "" || strings.Contains(t, ",") || Reserved(t) {
			return fail("tag", t, "use text without commas, and none of "+TagEmpty+", "+TagPartial+", "+
				tagChunker+"… and "+TagBlockPrefix+"…")
		}
	}
	for _, p := range o.Excludes {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return fail("exclude", p, "use a pattern such as *.tmp or cache/*")
		}
	}
	return o, nil
}

// share divides the memory budget: among readers of large files, which take each bytes of it, and the writer.
func (o *Options) share(each int64) (large int, writer int64) {
	large = int(min(max(o.MemoryBudget/4/each, 1), int64(o.ReadConcurrency), int64(runtime.GOMAXPROCS(0))))
	return large, o.MemoryBudget - int64(large)*each
}

// excluded reports whether an entry is left out. rel is its path below the source, name its last element.
func (o *Options) excluded(rel, name string) bool {
	for _, p := range o.Excludes {
		subject := name
		if strings.Contains(p, "/") {
			p, subject = strings.TrimPrefix(p, "/"), rel
		}
		if ok, _ := path.Match(p, subject); ok {
			return true
		}
	}
	return false
}
