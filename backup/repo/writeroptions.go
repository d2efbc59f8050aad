package repo

import "runtime"

const (
	// defaultPackSize is just below the 16 MiB from which some stores' clients send an object in parts. Where one request
	// surely takes more, singlePackSize makes for as few packs as restic has: it begins the next one after 16 MiB, and
	// this project before that.
	defaultPackSize = 16<<20 - 4<<10
	singlePackSize  = 18 << 20
	minPackSize     = 4 << 20
	maxPackSize     = 128 << 20
	defaultBudget   = 160 << 20
	defaultUploads  = 4
	dataPacks       = 2        // open at once
	treePacks       = 2        // one open, one being uploaded
	firstTrees      = 1 << 20  // of a pack of trees, in bytes
	scratchSize     = 12 << 20 // what a worker needs for chunks of 4 MiB
)

// WriterOptions refines NewWriter. The zero value is right for most callers.
type WriterOptions struct {
	// PackSize is the most that a pack has, in bytes; a larger blob gets a pack of its own. 0: just below 16 MiB, or
	// 18 MiB where the store says that this is one request, too.
	// Values from 4 to 128 MiB are kept, others moved there.
	PackSize int
	// MemoryBudget bounds the buffers of the writer, in bytes. With little of it fewer packs are uploaded at once, and
	// packs are smaller. 0: 160 MiB. Below 32 MiB it is exceeded. Blobs larger than a pack come on top, one at a time.
	MemoryBudget int64
	// Uploads is how many packs are uploaded at once. 0: 4.
	Uploads int
	// Compression is the effort; the zero value is CompressFastest.
	Compression Compression
	// NoVerify leaves out decompressing what was compressed and comparing it. It saves a fifth of the work on
	// compressible data.
	NoVerify bool
	// StoreKnown stores blobs that the index has already, once per writer: for moving them out of packs that are to go.
	StoreKnown bool
}

// singles is what a store may offer: blobstore.Store does.
type singles interface {
	// MaxSingle returns how large an object may be, in bytes, that takes one request to write.
	MaxSingle() int64
}

func packSizeFor(s Store) int {
	if s, ok := s.(singles); ok && s.MaxSingle() >= singlePackSize {
		return singlePackSize
	}
	return defaultPackSize
}

// plan is what follows from a memory budget.
type plan struct {
	packSize, uploads, workers int
}

// makePlan gives up parallel uploads down to two, then half of the pack size, the second upload, and more pack size.
func makePlan(o *WriterOptions, cpus int) plan {
	budget := o.MemoryBudget
	if budget <= 0 {
		budget = defaultBudget
	}
	p := plan{packSize: o.PackSize, uploads: o.Uploads, workers: max(1, cpus)}
	if p.packSize == 0 {
		p.packSize = defaultPackSize
	}
	p.packSize = min(max(p.packSize, minPackSize), maxPackSize)
	if p.uploads <= 0 {
		p.uploads = defaultUploads
	}
	for p.workers > 1 && int64(p.workers*scratchSize) > budget/2 {
		p.workers--
	}
	fits := func() bool { return p.memory() <= budget }
	for p.uploads > 2 && !fits() {
		p.uploads--
	}
	if !fits() {
		p.packSize = max(minPackSize, p.packSize/2)
	}
	for p.uploads > 1 && !fits() {
		p.uploads--
	}
	for p.packSize > minPackSize && !fits() {
		p.packSize = max(minPackSize, p.packSize/2)
	}
	return p
}

// buffers is how many packs of data there are at once.
func (p plan) buffers() int { return dataPacks + p.uploads }

// memory is what the plan takes in bytes. Trees rarely take more than half a pack.
func (p plan) memory() int64 {
	return int64(p.buffers()*p.packSize) + int64(p.packSize/2) + int64(p.workers*scratchSize)
}

func cpus() int { return runtime.GOMAXPROCS(0) }
