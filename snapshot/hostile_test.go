package snapshot_test

import (
	"context"
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/snapshot"
)

var hostile = []string{
	"", " ", ".", "..", "../../x", "a/b", "A", "-a", "\x00", "\n", "\xff", "é", strings.Repeat("a", 300), strings.Repeat("é", 1<<16),
}

func TestHostileNamesBecomeDNSLabels(t *testing.T) {
	seen := map[string]string{}
	for _, text := range hostile {
		name := snapshot.Name(text, text)
		require.Empty(t, validation.IsDNS1123Label(name), "%.20q", text)
		require.Empty(t, seen[name], "%.20q", text)
		seen[name] = text + "x"
	}
	require.Empty(t, validation.IsDNS1123Label(snapshot.Name("")))
}

func TestIncompleteRequestsAreInvalidAndReachNoServer(t *testing.T) {
	s := snapshot.New(nil, snapshot.Options{}) // a call would panic
	owner := snapshot.Owner{UID: "me"}
	for _, text := range []string{"", "\x00", "a b"} {
		_, err := s.Ensure(t.Context(), snapshot.Request{Namespace: "ns", Name: text, Claim: "c", Class: "k", Owner: owner})
		require.ErrorIs(t, err, snapshot.ErrInvalid, "name %q", text)
		bad := snapshot.Owner{UID: types.UID(text)}
		_, err = s.Ensure(t.Context(), snapshot.Request{Namespace: "ns", Name: "n", Claim: "c", Class: "k", Owner: bad})
		require.ErrorIs(t, err, snapshot.ErrInvalid, "owner %q", text)
		_, err = s.List(t.Context(), "ns", bad, nil)
		require.ErrorIs(t, err, snapshot.ErrInvalid)
	}
	_, err := s.Ensure(t.Context(), snapshot.Request{})
	require.ErrorIs(t, err, snapshot.ErrInvalid)
	_, err = s.Observe(t.Context(), "", "n")
	require.ErrorIs(t, err, snapshot.ErrInvalid)
	_, err = s.Observe(t.Context(), "ns", "")
	require.ErrorIs(t, err, snapshot.ErrInvalid)
	_, err = s.ResolveClaim(t.Context(), "ns", "")
	require.ErrorIs(t, err, snapshot.ErrInvalid)
	_, err = s.List(t.Context(), "", owner, nil)
	require.ErrorIs(t, err, snapshot.ErrInvalid, "no namespace is not all of them")
	_, err = s.Delete(t.Context(), snapshot.Ref{}, owner)
	require.ErrorIs(t, err, snapshot.ErrInvalid)
}

func TestPureFunctionsTakeNothing(t *testing.T) {
	require.Equal(t, snapshot.Observation{State: snapshot.Absent}, snapshot.Look(nil))
	require.Equal(t, snapshot.Creating, snapshot.Look(&snapshotv1.VolumeSnapshot{}).State)
	_, err := snapshot.Choose(nil, "", "")
	require.ErrorIs(t, err, snapshot.ErrClassMissing)
	require.NoError(t, snapshot.APIError("get", "", nil))
	require.False(t, snapshot.IsGone(nil))
	require.False(t, snapshot.IsNotServed(nil))
	for _, d := range []time.Duration{0, -1, 1 << 62} {
		for _, now := range []time.Time{{}, time.Unix(1<<40, 0)} {
			err := snapshot.Judge(snapshot.Observation{Created: now.Add(time.Hour)}, snapshot.Deadlines{Taken: d, Ready: d}, now)
			require.NotEqual(t, reconcilekit.ClassNone, reconcilekit.Classify(err))
		}
	}
}

func TestAnEndedContextIsTheCallersAffair(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := snapshot.New(interceptor.NewClient(fakeClient(t), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return ctx.Err() // as a client of a server answers
		},
	}), snapshot.Options{})
	_, err := s.Observe(ctx, "ns", "n")
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, reconcilekit.ClassStopping, reconcilekit.Classify(err))
}
