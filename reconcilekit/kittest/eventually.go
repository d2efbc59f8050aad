package kittest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const pollEvery = 20 * time.Millisecond

// Eventually calls check until it returns nil, and fails the test with its last
// error when that takes longer than deadline.
func Eventually(t testing.TB, deadline time.Duration, check func() error) {
	t.Helper()
	expired := time.NewTimer(deadline)
	defer expired.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-expired.C:
			t.Fatalf("still not so after %s: %v", deadline, err)
		case <-tick.C:
		}
	}
}

// EventuallyObject reads obj with c until check returns nil, and fails the test
// with its last error and the object as last read when that takes longer than
// deadline.
func EventuallyObject(t testing.TB, c client.Reader, obj client.Object, deadline time.Duration, check func() error) {
	t.Helper()
	Eventually(t, deadline, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		if err := check(); err != nil {
			return fmt.Errorf("%w\nthe object: %s", err, pretty(obj))
		}
		return nil
	})
}

func pretty(obj client.Object) string {
	obj = obj.DeepCopyObject().(client.Object)
	obj.SetManagedFields(nil)
	data, err := json.MarshalIndent(obj, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}
