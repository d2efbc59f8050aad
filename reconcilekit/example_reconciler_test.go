package reconcilekit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/kittest"
)

// Site is the kind of the example.
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   struct{ Domain string } `json:"spec"`
	Status SiteStatus              `json:"status"`
}

// SiteStatus is what was observed.
type SiteStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

func (s *Site) GetConditions() []metav1.Condition  { return s.Status.Conditions }
func (s *Site) SetConditions(c []metav1.Condition) { s.Status.Conditions = c }

func (s *Site) DeepCopyObject() runtime.Object {
	out := *s
	out.ObjectMeta = *s.ObjectMeta.DeepCopy()
	out.Status.Conditions = slices.Clone(s.Status.Conditions)
	return &out
}

// siteReconciler publishes sites.
type siteReconciler struct {
	client.Client
	finisher *reconcilekit.Finisher
	domains  map[string]bool // the world outside
}

func (r *siteReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	site := &Site{}
	if err := r.Get(ctx, req.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := site.DeepCopyObject().(*Site)
	outcome, err := r.step(ctx, site)
	return r.finisher.Finish(ctx, before, site, outcome, err, reconcilekit.Policy{})
}

func (r *siteReconciler) step(ctx context.Context, site *Site) (reconcilekit.Outcome, error) {
	if !site.DeletionTimestamp.IsZero() {
		_, err := reconcilekit.Finalize(ctx, r, site, "example.com/domain", func(context.Context) error {
			delete(r.domains, site.Spec.Domain)
			return nil
		})
		return reconcilekit.Outcome{}, err
	}
	if _, err := reconcilekit.EnsureFinalizer(ctx, r, site, "example.com/domain"); err != nil {
		return reconcilekit.Outcome{}, err
	}
	if site.Spec.Domain == "" {
		return reconcilekit.Outcome{}, reconcilekit.Terminal("NoDomain", errors.New("spec.domain is empty: set it"))
	}
	r.domains[site.Spec.Domain] = true
	return reconcilekit.Outcome{Ready: metav1.Condition{Status: metav1.ConditionTrue, Reason: "Published"}}, nil
}

// A whole reconciler: it decides in step, and leaves finalizer, conditions, status and result to the package.
func Example() {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(schema.GroupVersion{Group: "example.com", Version: "v1"}, &Site{})
	c := kittest.FakeClient(scheme, &Site{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop"}})
	r := &siteReconciler{Client: c, domains: map[string]bool{}, finisher: &reconcilekit.Finisher{
		Controller: "site", Status: reconcilekit.NewStatusWriter(c, reconcilekit.StatusOptions{}),
	}}
	ctx, site := context.Background(), &Site{}
	key := client.ObjectKey{Namespace: "ns", Name: "shop"}
	reconcile := func() {
		result, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: key})
		fmt.Println("look again in", result.RequeueAfter, err)
		if err := c.Get(ctx, key, site); err != nil {
			fmt.Println("it is gone:", reconcilekit.IsGone(err))
			return
		}
		for _, condition := range site.Status.Conditions {
			fmt.Printf("  %s=%s %s %q\n", condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	}
	reconcile()
	site.Spec.Domain = "shop.example.com"
	_ = c.Update(ctx, site)
	reconcile()
	_ = c.Delete(ctx, site)
	reconcile()
	fmt.Println(len(r.domains), "domains are left")
	// Output:
	// look again in 10m0s <nil>
	//   Ready=False NoDomain "spec.domain is empty: set it"
	//   Stalled=True NoDomain "spec.domain is empty: set it"
	// look again in 0s <nil>
	//   Ready=True Published ""
	// look again in 0s <nil>
	// it is gone: true
	// 0 domains are left
}
