package snapshottest

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/snapshot"
)

// DefaultName is the CSI driver's name when Options give none.
const DefaultName = "standin.csi.example.com"

// Options of New. The zero value works.
type Options struct {
	// Name of the CSI driver; DefaultName.
	Name string
	// Poll is how often Run looks; 50 ms.
	Poll time.Duration
	// Now is the clock; time.Now.
	Now func() time.Time
}

// Driver is the stand-in. It is safe for concurrent use.
type Driver struct {
	client client.Client
	o      Options

	mu      sync.Mutex
	script  Script
	scripts map[types.NamespacedName]Script
	seen    map[string]time.Time
	lastErr error
}

// New returns a Driver that works through c, which must not be cached and whose
// scheme must know what snapshot.AddToScheme adds.
func New(c client.Client, o Options) *Driver {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if o.Poll <= 0 {
		o.Poll = 50 * time.Millisecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Driver{client: c, o: o, scripts: map[types.NamespacedName]Script{}, seen: map[string]time.Time{}}
}

// Name is the CSI driver's name.
func (d *Driver) Name() string { return d.o.Name }

// Play sets the script of every snapshot that has none of its own.
func (d *Driver) Play(s Script) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.script = s
}

// PlayFor sets the script of one snapshot.
func (d *Driver) PlayFor(namespace, name string, s Script) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.scripts[types.NamespacedName{Namespace: namespace, Name: name}] = s
}

// Run plays until ctx ends, and returns nil then. Errors do not end it, see
// LastError.
func (d *Driver) Run(ctx context.Context) error {
	tick := time.NewTicker(d.o.Poll)
	defer tick.Stop()
	for {
		err := d.Step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		d.remember(err)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// LastError is the error of Run's last look, nil when that went well.
func (d *Driver) LastError() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lastErr
}

func (d *Driver) remember(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastErr = err
}

// Step looks once at everything and does what is due. Conflicts and what is
// gone meanwhile are left to the next step, as is a snapshot API that is not
// served.
func (d *Driver) Step(ctx context.Context) error {
	return errors.Join(d.stepSnapshots(ctx), d.stepClaims(ctx), d.stepVolumes(ctx))
}

func (d *Driver) scriptOf(obj client.Object) Script {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.scripts[client.ObjectKeyFromObject(obj)]; ok {
		return s
	}
	return d.script
}

// since is how long ago the driver first saw obj in this stage of its life.
func (d *Driver) since(obj client.Object, stage string) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, key := d.o.Now(), idOf(obj)+"/"+stage
	first, ok := d.seen[key]
	if !ok {
		first = now
		d.seen[key] = first
	}
	return now.Sub(first)
}

// idOf is the UID, or what must do where a fake client gives none.
func idOf(obj client.Object) string {
	if uid := obj.GetUID(); uid != "" {
		return string(uid)
	}
	return obj.GetNamespace() + "-" + obj.GetName()
}

// passing drops the errors that the next step gets over by itself.
func passing(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || snapshot.IsNotServed(err) {
		return nil
	}
	return err
}

// each does f for every item, and joins what does not pass by itself.
func each[T any](items []T, f func(*T) error) error {
	var errs []error
	for i := range items {
		errs = append(errs, passing(f(&items[i])))
	}
	return errors.Join(errs...)
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
