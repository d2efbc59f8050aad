package blockdev

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"strings"
	"time"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/repo"
)

// Options refines Backup. Host and Path are required; the rest has defaults.
type Options struct {
	// Host and Path (absolute) say whose snapshot it is; parents are chosen by them.
	Host, Path string
	// Tags are added to the snapshot. None may have a comma or be one that this package or package archiver sets.
	Tags []string
	// Time is the snapshot's. Zero: now.
	Time time.Time
	// RunName makes the commit happen once for the name; see repo.Repository.CommitRun. Empty: every call commits.
	RunName string
	// ProgramVersion is recorded, for example "pvcbackup 1.2.3".
	ProgramVersion string

	// Handle names the state of the volume that is backed up, for example the CSI handle of the snapshot that it was
	// made from. A later run can have changes relative to it. Up to 1024 bytes; empty: none can.
	Handle string
	// Volume names the volume, for example "driver/volume-handle". Changes of one volume are never applied to what is
	// stored of another. Up to 1024 bytes.
	Volume string
	// Parent is the snapshot to compare with. Zero: the latest complete one of a volume with the same Host and Path.
	Parent repo.ID
	// NoParent reads everything.
	NoParent bool

	// Changes is asked once for what changed since the state base, which is the Handle of the parent; empty when there is
	// no parent that could be used, which asks for what is allocated. It may answer nil: it does not know. Whatever it
	// answers is checked, and its errors end in a full read. nil: the whole volume is read.
	Changes func(ctx context.Context, base string) (*Changes, error)
	// FullEvery makes at least every n-th run a full read. 0: none has to be.
	FullEvery int
	// SampleShare is the share of the chunks that are taken over which is read all the same, and compared: from 0 to 1, at
	// least four chunks. 0: one in a thousand. Negative: none.
	SampleShare float64

	// ChunkSize is in bytes: a power of two from 256 KiB to 32 MiB. 0: 1 MiB, and 4 MiB above 256 GiB; more above 16 TiB.
	// A volume whose chunk size changes is read and stored anew. Chunks beyond 8 MiB are stored one at a time.
	ChunkSize int
	// Compression is the effort; the zero value is repo.CompressFastest.
	Compression repo.Compression
	// PackSize is as in repo.WriterOptions.
	PackSize int
	// ReadConcurrency is how many chunks are read at once. 0: twice the number of CPUs.
	ReadConcurrency int
	// MemoryBudget bounds all buffers and the list of chunks, in bytes; the index comes on top. 0: 176 MiB. Below 64 MiB,
	// and with more than half a million chunks, it is exceeded.
	MemoryBudget int64
	// SampleBlobs is as in archiver.Verify.
	SampleBlobs int

	// Progress is called about once a ProgressInterval (0: one second), and once at the end of reading, by one
	// goroutine at a time. nil: not called.
	Progress         func(Progress)
	ProgressInterval time.Duration
}

// Progress is how far a run has come, in bytes of the volume.
type Progress struct {
	// Bytes are done: stored, taken over, or found to be a hole. In a restore every byte counts when it was written, and
	// once more when it was read again.
	Bytes, TotalBytes uint64
	// Stored is how much has been added to the repository, compressed.
	Stored uint64
}

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30

	smallChunk = mib
	largeChunk = 4 * mib
	largeFrom  = 256 * gib // above, chunks are large
	minChunk   = 256 * kib
	maxChunk   = 32 * mib
	// maxChunks bounds the list of chunks, which is one blob of the repository: 67 bytes for each.
	maxChunks = 1 << 22

	// listCost is what a chunk takes while the list of all chunks is stored, in bytes: its ID in the parent's list and in
	// the new one, and its 67 characters in the tree, in the compressed tree (half), decompressed to compare, and sealed
	// (half).
	listCost = 2*len32 + 3*67
	len32    = 32 // of an ID

	defaultBudget = 176 * mib
	leastWriter   = 32 * mib
	defaultSample = 8
	defaultShare  = 0.001
	minSample     = 4
	maxName       = 1024
)

func (o Options) withDefaults() Options {
	if o.Time.IsZero() {
		o.Time = time.Now()
	}
	if o.SampleShare == 0 {
		o.SampleShare = defaultShare
	}
	if o.ReadConcurrency <= 0 {
		o.ReadConcurrency = 2 * runtime.GOMAXPROCS(0)
	}
	if o.MemoryBudget <= 0 {
		o.MemoryBudget = defaultBudget
	}
	if o.SampleBlobs == 0 {
		o.SampleBlobs = defaultSample
	}
	if o.ProgressInterval <= 0 {
		o.ProgressInterval = time.Second
	}
	return o
}

func (o *Options) check() error {
	fail := func(field string, value any, advice string) error {
		return fmt.Errorf("%w: %s is %.200q: %s", ErrOption, field, fmt.Sprint(value), advice)
	}
	switch {
	case o.Host == "":
		return fail("host", o.Host, "say whose snapshot it is")
	case !path.IsAbs(o.Path) || path.Clean(o.Path) != o.Path:
		return fail("path", o.Path, "use a clean absolute path such as /namespace/claim")
	case o.NoParent && !o.Parent.IsZero():
		return fail("parent", o.Parent.Short(), "either name a parent or refuse one")
	case len(o.Handle) > maxName:
		return fail("handle", o.Handle, fmt.Sprintf("use up to %d bytes", maxName))
	case len(o.Volume) > maxName:
		return fail("volume", o.Volume, fmt.Sprintf("use up to %d bytes", maxName))
	case o.ChunkSize != 0 && (o.ChunkSize < minChunk || o.ChunkSize > maxChunk || o.ChunkSize&(o.ChunkSize-1) != 0):
		return fail("chunk size", o.ChunkSize, "use a power of two from 256 KiB to 32 MiB")
	case o.SampleShare > 1:
		return fail("sample share", o.SampleShare, "use a share from 0 to 1")
	case o.FullEvery < 0:
		return fail("full every", o.FullEvery, "use a number of runs, or 0")
	}
	for _, t := range o.Tags {
		if t == "" || strings.Contains(t, ",") || archiver.Reserved(t) {
			return fail("tag", t, "use text without commas that is not reserved")
		}
	}
	return nil
}

// geometry returns how a volume of this size is cut.
func (o *Options) geometry(size int64) (geometry, error) {
	g := geometry{size: size, chunk: int64(o.ChunkSize)}
	if g.chunk == 0 {
		g.chunk = smallChunk
		if size > largeFrom {
			g.chunk = largeChunk
		}
		for g.chunks() > maxChunks && g.chunk < maxChunk {
			g.chunk *= 2
		}
	}
	switch {
	case size <= 0:
		return g, fmt.Errorf("%w: the volume has %d bytes", ErrOption, size)
	case g.chunks() > maxChunks:
		return g, fmt.Errorf("%w: the volume has %d bytes, and in chunks of %d at most %d can be stored",
			ErrOption, size, g.chunk, maxChunks*g.chunk)
	}
	return g, nil
}

// division is what becomes of the memory budget.
type division struct {
	// data is what the writer of chunks gets.
	data int64
	// readers is how many chunks are read at once.
	readers int
	// apart says that the list of chunks is too long to be stored beside the buffers of the writer of chunks, so that it
	// gets a writer of its own afterwards. That costs one more index file.
	apart bool
}

func (o *Options) divide(g geometry) division {
	ids, list := int64(g.chunks())*2*len32, int64(g.chunks())*listCost
	readers := max(1, min(o.MemoryBudget/4/g.chunk, int64(o.ReadConcurrency)))
	d := division{readers: int(readers), apart: list > o.MemoryBudget/4}
	beside := ids + readers*g.chunk
	if !d.apart {
		beside = max(beside, list)
	}
	d.data = max(leastWriter, o.MemoryBudget-beside)
	return d
}
