package snapshot

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/snapshot/internal/kube"
)

// Options of New. The zero value works.
type Options struct {
	// Live reads past the cache: on AlreadyExists and before a deletion. Nil
	// reads with the client, which is right when that is not cached.
	Live client.Reader
	// Timeout bounds every single call; zero is 30 seconds.
	Timeout time.Duration
	// Contents makes Ensure and Observe fill Handle and Driver, which takes
	// leave to get volumesnapshotcontents.
	Contents bool
}

// Client creates, observes and deletes VolumeSnapshots. It holds no state and
// is safe for concurrent use.
type Client struct {
	calls    kube.Calls
	contents bool
}

// New returns a Client over c, whose scheme must know the VolumeSnapshot v1
// types (AddToScheme).
func New(c client.Client, o Options) *Client {
	return &Client{calls: kube.New(c, o.Live, o.Timeout), contents: o.Contents}
}
