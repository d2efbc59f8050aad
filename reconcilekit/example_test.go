package reconcilekit_test

import (
	"errors"
	"fmt"
	"time"

	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/internal/widget"
)

func ExampleClassify() {
	network := errors.New("network is down")
	fmt.Println(reconcilekit.Classify(network))
	fmt.Println(reconcilekit.Classify(fmt.Errorf("reading the schedule: %w", reconcilekit.Terminal("BadSchedule", nil))))
	fmt.Println(reconcilekit.Classify(errors.Join(reconcilekit.Terminal("BadSchedule", nil), network)))
	// Output:
	// Transient
	// Terminal
	// Transient
}

func ExampleSettle() {
	obj := &widget.Widget{}
	step := reconcilekit.Waiting("SnapshotPending", 30*time.Second, errors.New("the snapshot is not ready"))
	result, err := reconcilekit.Settle(obj, reconcilekit.Outcome{}, step, reconcilekit.Policy{Now: now})
	fmt.Println(result.RequeueAfter, err)
	for _, c := range obj.GetConditions() {
		fmt.Printf("%s=%s %s %q\n", c.Type, c.Status, c.Reason, c.Message)
	}
	// Output:
	// 30s <nil>
	// Ready=Unknown NotDetermined ""
	// Reconciling=True SnapshotPending "the snapshot is not ready"
}

func ExampleStableText() {
	fmt.Println(reconcilekit.StableText(`Put "https://key:secret@store.example.com/b?X-Amz-Signature=1": dial tcp 10.0.0.7:443: refused`))
	// Output:
	// Put "https://store.example.com/b": dial tcp <address>: refused
}
