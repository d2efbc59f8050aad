package stage_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/stage"
)

func TestIncompleteRequestsAreInvalidAndReachNoServer(t *testing.T) {
	s := stage.New(nil, stage.Options{}) // a call would panic
	for name, change := range map[string]func(*stage.Request){
		"nothing":      func(r *stage.Request) { *r = stage.Request{} },
		"no namespace": func(r *stage.Request) { r.Namespace = "" },
		"a bad name":   func(r *stage.Request) { r.Name = "../x" },
		"no owner":     func(r *stage.Request) { r.Owner = snapshot.Owner{} },
		"no snapshot":  func(r *stage.Request) { r.Snapshot = snapshot.Observation{} },
		"no size":      func(r *stage.Request) { r.Snapshot.RestoreSize, r.Source.Capacity = -1, resource.Quantity{} },
	} {
		r := request()
		change(&r)
		_, err := s.Ensure(t.Context(), r)
		require.ErrorIs(t, err, snapshot.ErrInvalid, name)
	}
	_, err := s.EnsureEmpty(t.Context(), stage.EmptyRequest{Namespace: "ns", Name: "n", Owner: me, Size: resource.MustParse("-1")})
	require.ErrorIs(t, err, snapshot.ErrInvalid)
	for _, namespace := range []string{"", "ns"} {
		owner := me
		if namespace != "" {
			owner = snapshot.Owner{}
		}
		_, err = s.Sweep(t.Context(), namespace, owner, nil)
		require.ErrorIs(t, err, snapshot.ErrInvalid, "no namespace is not all of them")
		_, err = s.List(t.Context(), namespace, owner)
		require.ErrorIs(t, err, snapshot.ErrInvalid)
	}
	_, err = s.Observe(t.Context(), "ns", "")
	require.ErrorIs(t, err, snapshot.ErrInvalid)
	_, err = s.Delete(t.Context(), snapshot.Ref{}, me)
	require.ErrorIs(t, err, snapshot.ErrInvalid)
}

func TestPureFunctionsTakeNothing(t *testing.T) {
	require.Equal(t, stage.Absent, stage.Look(nil, nil).State)
	err := stage.Judge(stage.Observation{}, -1, time.Time{})
	require.Equal(t, reconcilekit.ClassWaiting, reconcilekit.Classify(err))
}
