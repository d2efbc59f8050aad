package kittest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/reconcilekit/kittest"
)

func TestCrashEverywhereBreaksEveryCallOfAGoodReconciler(t *testing.T) {
	require.Equal(t, 3, kittest.CrashEverywhere(t, scenario(flaws{}))) // create, put, patch

	withReads := scenario(flaws{})
	withReads.Reads = true
	require.Equal(t, 9, kittest.CrashEverywhere(t, withReads)) // and two reads in each of three reconciles
}

func TestCrashEverywhereSurvivesLaggingReads(t *testing.T) {
	// A second reconcile sees nothing of the first, does it all again and conflicts.
	require.Equal(t, 6, kittest.CrashEverywhere(t, kittest.Scenario{Max: 20, World: func(testing.TB) kittest.World {
		lagging := kittest.Client(kittest.FakeClient(scheme, newWidget()), kittest.LagReads(1))
		w := world(flaws{}, lagging, key)
		settled := w.Final
		w.Final = func(ctx context.Context) (any, error) { lagging.CatchUp(); return settled(ctx) }
		return w
	}}))
}

func TestCrashEverywhereFailsABadReconciler(t *testing.T) {
	for name, tc := range map[string]struct {
		flaws flaws
		want  []string
	}{
		"duplicates after a lost response": {flaws{generatedNames: true},
			[]string{"call 1 of 3 (create configmaps ns) loses its response: another final world", "process stops, after it"}},
		"cannot go on after a lost response": {flaws{trustsCreate: true},
			[]string{"call 1 of 3 (create configmaps ns/child) loses its response: not settled", "already exists"}},
		"does outside work twice": {flaws{appends: true},
			[]string{"call 2 of 3 (put object) loses its response: another final world", "call 3 of 3 (patch widgets/status ns/w) fails: another final world"}},
		"forgets in a restart what it never wrote down": {flaws{remembersInMemory: true, appends: true},
			[]string{"call 3 of 3 (patch widgets/status ns/w) is where the process stops, before it: another final world"}},
		"never settles": {flaws{alwaysWrites: true}, []string{"the clean run: not settled"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := failures(t, func(t testing.TB) { kittest.CrashEverywhere(t, scenario(tc.flaws)) })
			requireContains(t, got, tc.want...)
		})
	}
}

func TestCrashEverywhereFailsARunThatMakesOtherCallsEachTime(t *testing.T) {
	runs := 0
	s := scenario(flaws{})
	play := s.World
	s.World = func(t testing.TB) kittest.World {
		runs++
		w := play(t)
		if runs > 1 {
			w.Start = func(p kittest.Process) kittest.Reconcile {
				return (&reconciler{Process: p, key: key, put: true, bucket: bucket{}}).reconcile
			}
		}
		return w
	}
	got := failures(t, func(t testing.TB) { kittest.CrashEverywhere(t, s) })
	requireContains(t, got, "the run made only 2 calls")
}

func TestCrashEverywhereFailsWhenThereIsNothingToBreak(t *testing.T) {
	got := failures(t, func(t testing.TB) {
		kittest.CrashEverywhere(t, kittest.Scenario{World: func(testing.TB) kittest.World {
			w := world(flaws{}, kittest.FakeClient(scheme), key)
			w.Start = func(kittest.Process) kittest.Reconcile { return nothing }
			w.Final = func(context.Context) (any, error) { return nil, nil }
			return w
		}})
	})
	requireContains(t, got, "made no call that could go wrong")
}

// A process that was stopped can do nothing more, whatever it left running.
func TestCrashEverywhereStoppedProcessesStayStopped(t *testing.T) {
	var earlier []kittest.Process
	s := scenario(flaws{})
	play := s.World
	s.World = func(t testing.TB) kittest.World {
		w := play(t)
		start, started := w.Start, 0
		w.Start = func(p kittest.Process) kittest.Reconcile {
			if started++; started == 2 {
				old := earlier[len(earlier)-1]
				require.ErrorIs(t, old.Client.Get(t.Context(), key, newWidget()), kittest.ErrStopped)
				require.ErrorIs(t, old.Client.Delete(t.Context(), newWidget()), kittest.ErrStopped)
				require.ErrorIs(t, old.Outside("put", func() error { return nil }), kittest.ErrStopped)
			}
			earlier = append(earlier, p)
			return start(p)
		}
		return w
	}
	kittest.CrashEverywhere(t, s)
	require.Len(t, earlier, 1+3*(1+1+2+2), "two ways of four start a second process")
}

func TestServerCrashEverywhereWorksWithARealAPIServer(t *testing.T) {
	cluster := api.Start(t)
	n := kittest.CrashEverywhere(t, kittest.Scenario{World: func(t testing.TB) kittest.World {
		w := newWidget()
		w.Namespace = cluster.Namespace(t)
		require.NoError(t, cluster.Client.Create(t.Context(), w))
		return world(flaws{}, cluster.Client, client.ObjectKeyFromObject(w))
	}})
	require.Equal(t, 3, n)
}
