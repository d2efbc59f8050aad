package reconcilekit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/internal/widget"
	"example.com/pvcbackup/reconcilekit/kittest"
)

// readConfigMap returns a client and a ConfigMap that was read with it.
func readConfigMap(finalizers ...string) (client.Client, *corev1.ConfigMap) {
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "settings", Finalizers: finalizers}}
	c := kittest.FakeClient(clientgoscheme.Scheme, obj)
	if err := c.Get(context.Background(), client.ObjectKeyFromObject(obj), obj); err != nil {
		panic(err)
	}
	return c, obj
}

func ExampleEnsureFinalizer() {
	c, obj := readConfigMap()
	added, err := reconcilekit.EnsureFinalizer(context.Background(), c, obj, "example.com/account")
	fmt.Println(added, err, obj.Finalizers)
	added, err = reconcilekit.EnsureFinalizer(context.Background(), c, obj, "example.com/account")
	fmt.Println(added, err)
	// Output:
	// true <nil> [example.com/account]
	// false <nil>
}

func ExampleDropFinalizer() {
	c, obj := readConfigMap("example.com/account", "example.com/other")
	err := reconcilekit.DropFinalizer(context.Background(), c, obj, "example.com/account")
	fmt.Println(err, obj.Finalizers)
	// Output: <nil> [example.com/other]
}

func ExampleFinalize() {
	ctx := context.Background()
	c, obj := readConfigMap("example.com/account")
	_ = c.Delete(ctx, obj)
	_ = c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	done, err := reconcilekit.Finalize(ctx, c, obj, "example.com/account", func(context.Context) error {
		fmt.Println("closing the account")
		return nil
	})
	fmt.Println(done, err)
	// Output:
	// closing the account
	// true <nil>
}

func ExampleWaiting() {
	err := reconcilekit.Waiting("SnapshotPending", 30*time.Second, errors.New("the snapshot is not ready"))
	fmt.Println(reconcilekit.Classify(err), reconcilekit.Reason(err), reconcilekit.RetryAfter(err))
	// Output: Waiting SnapshotPending 30s
}

func ExampleTerminal() {
	err := fmt.Errorf("reading the spec: %w", reconcilekit.Terminal("BadSchedule", errors.New("it has seven fields")))
	fmt.Println(reconcilekit.Classify(err), reconcilekit.Reason(err), err)
	// Output: Terminal BadSchedule reading the spec: it has seven fields
}

// An error that calls itself terminal is overruled: here it is known to pass.
func ExampleTransient() {
	err := reconcilekit.Transient("AccountPending", reconcilekit.Terminal("NoAccount", nil))
	fmt.Println(reconcilekit.Classify(err), reconcilekit.Reason(err))
	// Output: Transient AccountPending
}

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

func ExampleReason() {
	fmt.Printf("%q\n", reconcilekit.Reason(nil))
	fmt.Printf("%q\n", reconcilekit.Reason(errors.New("boom")))
	fmt.Printf("%q\n", reconcilekit.Reason(reconcilekit.Terminal("bad schedule!", nil)))
	// Output:
	// ""
	// "Transient"
	// "Badschedule"
}

func ExampleRetryAfter() {
	err := errors.Join(reconcilekit.Waiting("Slow", time.Hour, nil), reconcilekit.Waiting("Quick", time.Minute, nil))
	fmt.Println(reconcilekit.RetryAfter(err), reconcilekit.Reason(err))
	// Output: 1m0s Quick
}

var secrets = schema.GroupResource{Resource: "secrets"}

func ExampleIsGone() {
	gone, denied := apierrors.NewNotFound(secrets, "key"), apierrors.NewForbidden(secrets, "key", nil)
	fmt.Println(reconcilekit.IsGone(gone), reconcilekit.IsGone(errors.Join(gone, denied)))
	// Output: true false
}

func ExampleIsNotServed() {
	err := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot"}}
	fmt.Println(reconcilekit.IsNotServed(fmt.Errorf("listing: %w", err)))
	// Output: true
}

func ExampleIsNamespaceTerminating() {
	err := apierrors.NewForbidden(secrets, "key", nil)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	fmt.Println(reconcilekit.IsNamespaceTerminating(err))
	// Output: true
}

func ExampleSetCondition() {
	var conditions []metav1.Condition
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Refused", Message: "dial 10.0.0.1:443: refused"}
	fmt.Println(reconcilekit.SetCondition(&conditions, 1, ready))
	ready.Message = "dial 10.0.0.2:443: refused" // another address of the same service
	fmt.Println(reconcilekit.SetCondition(&conditions, 1, ready))
	// Output:
	// true
	// false
}

func ExampleRemoveCondition() {
	conditions := []metav1.Condition{{Type: "Stalled", Status: metav1.ConditionTrue}}
	fmt.Println(reconcilekit.RemoveCondition(&conditions, "Stalled"), len(conditions))
	// Output: true 0
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

func ExampleNewStatusWriter() {
	ctx := context.Background()
	c := kittest.Client(kittest.FakeClient(scheme, newWidget()))
	w := &widget.Widget{}
	_ = c.Get(ctx, client.ObjectKeyFromObject(newWidget()), w)
	writer := reconcilekit.NewStatusWriter(c, reconcilekit.StatusOptions{})
	for _, note := range []string{"hello", "hello"} { // the second time there is nothing to write
		before := w.DeepCopy()
		w.Status.Note = note
		if err := writer.Write(ctx, before, w); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(len(c.Writes()), "write")
	// Output: 1 write
}

func ExampleCaller_Do() {
	caller := &reconcilekit.Caller{Timeouts: map[string]time.Duration{"store.put": time.Millisecond}}
	err := caller.Do(context.Background(), "store.put", func(ctx context.Context) error {
		<-ctx.Done() // a store that never answers
		return ctx.Err()
	})
	fmt.Println(err)
	fmt.Println(reconcilekit.Classify(err), reconcilekit.Reason(err))
	// Output:
	// store.put: no answer within 1ms: context deadline exceeded
	// Transient Timeout
}

func ExampleBoundedClient() {
	c, obj := readConfigMap()
	bounded := reconcilekit.BoundedClient(c, 10*time.Second)
	fmt.Println(bounded.Get(context.Background(), client.ObjectKeyFromObject(obj), obj))
	// Output: <nil>
}

func ExampleUncached() {
	cached, obj := readConfigMap()
	live := kittest.FakeClient(clientgoscheme.Scheme) // where it is gone by now
	c := reconcilekit.Uncached(cached, live)
	fmt.Println(reconcilekit.IsGone(c.Get(context.Background(), client.ObjectKeyFromObject(obj), obj)))
	// Output: true
}

func ExampleEvents_Transitions() {
	recorder := events.NewFakeRecorder(10)
	e := &reconcilekit.Events{Recorder: recorder, Action: "Backup"}
	before, after := newWidget(), newWidget()
	after.SetConditions([]metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "StoreDown", Message: "no answer"}})
	e.Transitions(before, after)
	e.Transitions(after, after) // nothing changed, so nothing is told
	fmt.Println(<-recorder.Events, len(recorder.Events))
	// Output: Warning StoreDown no answer 0
}

func ExampleNewMetrics() {
	registry := prometheus.NewRegistry()
	metrics, err := reconcilekit.NewMetrics(prometheus.WrapRegistererWithPrefix("myoperator_", registry))
	if err != nil {
		fmt.Println(err)
		return
	}
	caller := &reconcilekit.Caller{Metrics: metrics}
	_ = caller.Do(context.Background(), "store.put", func(context.Context) error { return nil })
	fmt.Println(testutil.GatherAndCount(registry, "myoperator_reconcilekit_call_duration_seconds"))
	// Output: 1 <nil>
}

// Registering a metric again yields the one that is there.
func ExampleRegister() {
	registry := prometheus.NewRegistry()
	for range 2 {
		counter, err := reconcilekit.Register(registry, prometheus.NewCounter(prometheus.CounterOpts{Name: "looks_total", Help: "Looks."}))
		if err != nil {
			fmt.Println(err)
			return
		}
		counter.Inc()
		fmt.Println(testutil.ToFloat64(counter))
	}
	// Output:
	// 1
	// 2
}

func ExampleNewObjectGauges() {
	registry := prometheus.NewRegistry()
	gauges := reconcilekit.NewObjectGauges(registry)
	age, err := gauges.Gauge("backup_age_seconds", "Age of the newest backup.")
	if err != nil {
		fmt.Println(err)
		return
	}
	age.Set("ns", "data", 60)
	fmt.Println(testutil.GatherAndCount(registry))
	gauges.Delete("ns", "data") // the object is gone
	fmt.Println(testutil.GatherAndCount(registry))
	// Output:
	// 1 <nil>
	// 0 <nil>
}

func ExampleRateLimiter() {
	limiter, request := reconcilekit.RateLimiter(), reconcile.Request{}
	for range 3 {
		fmt.Println(limiter.When(request))
	}
	// Output:
	// 200ms
	// 400ms
	// 800ms
}

func ExampleStableMessage() {
	err := errors.New("Operation cannot be fulfilled on pods: resourceVersion 4711 is too old, request-id=7a1")
	fmt.Println(reconcilekit.StableMessage(err))
	// Output: Operation cannot be fulfilled on pods: resourceVersion <version> is too old, request-id=<id>
}

func ExampleStableText() {
	fmt.Println(reconcilekit.StableText(`Put "https://key:secret@store.example.com/b?X-Amz-Signature=1": dial tcp 10.0.0.7:443: refused`))
	// Output:
	// Put "https://store.example.com/b": dial tcp <address>: refused
}
