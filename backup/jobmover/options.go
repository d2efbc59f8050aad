package jobmover

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/backup"
)

// ContainerName is the name of the container that runs the mover.
const ContainerName = "mover"

// Finalizer keeps a mover's Pod until its result was read.
const Finalizer = "storage.example.com/mover-result"

// Options are what movers have in common.
type Options struct {
	// Client reads from a cache that holds Jobs and Pods, and writes. Required by New.
	Client client.Client
	// Reader reads from the API server itself. Required by New.
	Reader client.Reader

	// Image is the mover's image. Its entrypoint is the data tool. Required.
	Image string
	// ImagePullPolicy is left to the cluster when empty.
	ImagePullPolicy corev1.PullPolicy
	// Command replaces the image's entrypoint; empty keeps it.
	Command []string
	// Args are the arguments. With no Command and no Args they are "mover".
	Args []string

	// Logs reads a running mover's newest log line. Nil means that movers have no progress, and that
	// MoverDeadlines.NoProgress is not held against them.
	Logs LogReader
	// LogEvery is the least time between two looks at one mover's log. Zero means 10 s.
	LogEvery time.Duration
	// Timeout bounds each call to the API server. Zero means 30 s.
	Timeout time.Duration
	// Now tells the time. Nil means time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if len(o.Command) == 0 && len(o.Args) == 0 {
		o.Args = []string{"mover"}
	}
	if o.LogEvery <= 0 {
		o.LogEvery = 10 * time.Second
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Mover is a backup.Mover. It is safe for concurrent use.
type Mover struct {
	options  Options
	progress *progressReader
}

var _ backup.Mover = (*Mover)(nil)

// New returns a mover. It panics when a client is missing, which only a programming error makes happen.
func New(o Options) *Mover {
	if o.Client == nil || o.Reader == nil {
		panic("jobmover: Options.Client and Options.Reader are required")
	}
	o = o.withDefaults()
	return &Mover{options: o, progress: newProgressReader(o)}
}
