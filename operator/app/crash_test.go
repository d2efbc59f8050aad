package app_test

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/backup/scheduled"
	v1 "example.com/pvcbackup/operator/api/v1"
)

// noise is data that makes more than one request.
func (p *place) noise(dir string) {
	p.Helper()
	random := make([]byte, 1<<20)
	source := rand.NewChaCha8([32]byte{1})
	_, err := source.Read(random)
	require.NoError(p, err)
	require.NoError(p, os.WriteFile(filepath.Join(dir, "noise"), random, 0o644))
}

func (p *place) came(held <-chan struct{}) {
	p.Helper()
	select {
	case <-held:
	case <-time.After(patience):
		p.Fatal("the mover made no such request")
	}
}

// hold holds requests of the test's movers, at most until the test ends.
func (p *place) hold(method, part string) (held <-chan struct{}, release func()) {
	held, release = p.gate.hold(p.bucket, method, part)
	p.Cleanup(release)
	return held, release
}

func TestAMoverThatIsKilledIsFollowedByAnotherAndItsLockNeverStopsLaterSlots(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	source := p.claim("volume")
	p.noise(source)
	held, release := p.hold(http.MethodPut, "/volume/data/")
	obj := p.backup("data", "volume")
	p.came(held)
	require.Len(t, p.objects("/locks/"), 1)
	pod := p.mover()
	require.NoError(t, p.kubelet.KillPod(p.namespace, pod.Name, syscall.SIGKILL))
	release()
	p.backedUp(obj, "")
	require.Equal(t, int32(2), obj.Status.LastAttempt.Movers)
	require.Len(t, p.objects("/snapshots/"), 1)

	p.backedUp(obj, p.again(obj))
	require.Len(t, p.objects("/snapshots/"), 2)
	require.Empty(t, p.objects("/locks/"), "the lock of the killed Pod is gone")
	p.restored(restoreOf("newest", "data"), source)
}

// killed takes a Pod away at once, with its result.
func (p *place) killed(pod *corev1.Pod) {
	p.Helper()
	now := int64(0)
	require.NoError(p, p.admin.Patch(p.Context(), pod, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	require.NoError(p, p.admin.Delete(p.Context(), pod, &client.DeleteOptions{GracePeriodSeconds: &now}))
	p.gone(pod)
}

func TestAPodDeletedBeforeItsResultIsReadIsNeverTakenForASuccessAndTheSlotEndsDone(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]struct {
		method, part string
		snapshots    int
	}{
		"before its commit": {http.MethodPut, "/volume/data/", 0},
		"after its commit":  {http.MethodDelete, "/locks/", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.noise(p.claim("volume"))
			held, release := p.hold(at.method, at.part)
			obj := p.backup("data", "volume")
			p.came(held)
			require.Len(t, p.objects("/snapshots/"), at.snapshots)
			p.killed(p.mover())
			require.NoError(t, p.admin.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
			require.Nil(t, obj.Status.LastBackup)
			release()
			p.backedUp(obj, "")
			require.Len(t, p.objects("/snapshots/"), 1, "one snapshot of a slot")
		})
	}
}

func TestAMoverWithoutProgressIsEndedAndFollowedByAnother(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.noise(p.claim("volume"))
	held, release := p.hold(http.MethodPut, "/volume/data/")
	obj := p.backup("data", "volume", func(b *v1.PVCBackup) {
		b.Spec.Deadlines = &scheduled.Deadlines{NoProgress: &metav1.Duration{Duration: 2 * time.Second}}
	})
	p.came(held)
	first := p.mover()
	p.await(obj, func() error {
		if c := obj.Status.Current; c == nil || c.Attempt < 2 {
			return errors.New("no other mover was started")
		}
		return nil
	})
	release()
	p.backedUp(obj, "")
	require.GreaterOrEqual(t, obj.Status.LastAttempt.Movers, int32(2))
	require.Len(t, p.objects("/snapshots/"), 1)
	p.gone(first)
}
