package kittest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Reconcile is one reconcile of one object.
type Reconcile func(ctx context.Context) (ctrl.Result, error)

// For returns the reconcile of one object by r.
func For(r reconcile.Reconciler, key client.ObjectKey) Reconcile {
	return func(ctx context.Context) (ctrl.Result, error) {
		return r.Reconcile(ctx, reconcile.Request{NamespacedName: key})
	}
}

// ConvergeOptions are the options of [Converge]. The zero value is ready to use.
type ConvergeOptions struct {
	// Max is how many reconciles it may take; 50 when zero.
	Max int
	// Between stands for the rest of the world: it is called before each
	// reconcile, moves clocks and other controllers on, and reports whether
	// there was anything to move.
	Between func(ctx context.Context) (moved bool, err error)
	// Timeout bounds the whole; 1 minute when zero.
	Timeout time.Duration
}

func (o ConvergeOptions) withDefaults() ConvergeOptions {
	if o.Max <= 0 {
		o.Max = 50
	}
	if o.Timeout <= 0 {
		o.Timeout = time.Minute
	}
	if o.Between == nil {
		o.Between = func(context.Context) (bool, error) { return false, nil }
	}
	return o
}

// Converge reconciles until one reconcile succeeds and writes nothing while the
// rest of the world stands still and lagging reads have caught up. Then it
// reconciles once more, which must write nothing either. It returns the number
// of reconciles and fails the test when they do not end. Errors on the way are
// tried again, as a controller would.
//
// reconcile has to use c.
func Converge(t testing.TB, c *FaultClient, reconcile Reconcile, options ConvergeOptions) (reconciles int) {
	t.Helper()
	options = options.withDefaults()
	ctx, cancel := context.WithTimeout(t.Context(), options.Timeout)
	defer cancel()
	reconciles, err := converge(ctx, func() *FaultClient { return c }, reconcile, options)
	if err != nil {
		t.Fatal(err)
	}
	return reconciles
}

// converge is Converge for a client that may be replaced meanwhile.
func converge(ctx context.Context, current func() *FaultClient, reconcile Reconcile, options ConvergeOptions) (int, error) {
	var last error
	var writes []Call
	settled := false
	for n := 1; n <= options.Max; n++ {
		moved, err := options.Between(ctx)
		if err != nil {
			return n, fmt.Errorf("moving the rest of the world: %w", err)
		}
		before := current()
		already := len(before.Writes())
		_, last = reconcile(ctx)
		restarted := current() != before
		writes = before.Writes()[already:]
		caughtUp := false
		if last != nil || len(writes) == 0 {
			caughtUp = current().CatchUp() // time passes before the next try
		}
		quiet := last == nil && len(writes) == 0 && !moved && !restarted && !caughtUp
		switch {
		case settled && len(writes) > 0:
			return n, fmt.Errorf("a settled object was written again:%s", lines(writes))
		case settled && quiet:
			return n, nil
		case ctx.Err() != nil:
			return n, fmt.Errorf("reconciling until nothing is written: %w (last error: %w)", ctx.Err(), last)
		}
		settled = quiet
	}
	if last != nil {
		return options.Max, fmt.Errorf("not settled after %d reconciles, the last failed: %w", options.Max, last)
	}
	return options.Max, fmt.Errorf("not settled after %d reconciles, the last wrote:%s", options.Max, lines(writes))
}

func lines(calls []Call) string {
	if len(calls) == 0 {
		return " nothing"
	}
	var b strings.Builder
	for _, c := range calls {
		b.WriteString("\n\t" + c.String())
	}
	return b.String()
}
