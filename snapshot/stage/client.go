package stage

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/internal/kube"
)

// PurposeLabel says what a claim is for. Only claims of PurposeStage are ever
// deleted; a claim that is filled for a user is PurposeTarget.
const (
	PurposeLabel  = "storage.example.com/purpose"
	PurposeStage  = "stage"
	PurposeTarget = "target"
)

var (
	// ErrSourceDropped is an API server that accepted the claim and removed its
	// data source: the volume would have been empty and looked like a copy. The
	// claim was deleted again. Terminal.
	ErrSourceDropped = snapshot.NewKind("DataSourceDropped", true, 0,
		"the API server removed the data source, so the volume would be empty")
	// ErrLost is a staged claim that lost its volume. Terminal.
	ErrLost = snapshot.NewKind("StagedLost", true, 0, "the staged claim has lost its volume")
)

// Options of New, the same as the snapshot package's.
type Options = snapshot.Options

// Client creates, observes and deletes claims. It holds no state and is safe
// for concurrent use.
type Client struct {
	calls     kube.Calls
	snapshots *snapshot.Client
}

// New returns a Client over c, whose scheme must know what
// snapshot.AddToScheme adds.
func New(c client.Client, o Options) *Client {
	return &Client{calls: kube.New(c, o.Live, o.Timeout), snapshots: snapshot.New(c, o)}
}
