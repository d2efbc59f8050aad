package blockdev

import "time"

// RestoreOptions refines RestoreToDevice and RestoreToFile. The zero value writes the volume of a snapshot to a target
// that is not in use, and verifies it.
type RestoreOptions struct {
	// Path is the file of the snapshot that is written, relative to the source. Empty: the volume. It makes an image out
	// of a snapshot that somebody made of a folder, or with restic.
	Path string
	// Overwrite writes to a device that looks used, and replaces a file that exists.
	Overwrite bool
	// Zeroed says that the device is known to read as zeros, so that none are written. That is verified like the rest.
	Zeroed bool
	// SkipVerify does not read the target again.
	SkipVerify bool
	// Concurrency is how many workers write. 0: 4.
	Concurrency int
	// MemoryBudget bounds the buffers, in bytes; the index and the list of chunks come on top. 0: 192 MiB. Each worker
	// takes 48 MiB, and there is always one.
	MemoryBudget int64
	// Progress is called about once a ProgressInterval (0: one second), and at the end. nil: not called.
	Progress         func(Progress)
	ProgressInterval time.Duration
}

const perWorker = 48 * mib

func (o RestoreOptions) withDefaults() RestoreOptions {
	if o.Concurrency <= 0 {
		o.Concurrency = 4
	}
	if o.MemoryBudget <= 0 {
		o.MemoryBudget = 4 * perWorker
	}
	o.Concurrency = int(max(1, min(int64(o.Concurrency), o.MemoryBudget/perWorker)))
	if o.ProgressInterval <= 0 {
		o.ProgressInterval = time.Second
	}
	return o
}
