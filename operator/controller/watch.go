package controller

import (
	"context"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"example.com/pvcbackup/backup"
)

// indexUID finds an object by its UID, which is what its children carry.
const indexUID = "metadata.uid"

func indexByUID(ctx context.Context, mgr ctrl.Manager, kind client.Object) error {
	return mgr.GetFieldIndexer().IndexField(ctx, kind, indexUID, func(obj client.Object) []string { return []string{string(obj.GetUID())} })
}

// childrenOf maps a child to its owner of the list's kind, by the UID in the child's label.
func childrenOf[L client.ObjectList](reader client.Reader, newList func() L) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, child client.Object) []reconcile.Request {
		uid := child.GetLabels()[backup.LabelOwnerUID]
		if uid == "" {
			return nil
		}
		return listed(ctx, reader, newList(), client.MatchingFields{indexUID: uid}, client.InNamespace(child.GetNamespace()))
	})
}

// listed returns a request for every object that a list finds.
func listed(ctx context.Context, reader client.Reader, list client.ObjectList, options ...client.ListOption) []reconcile.Request {
	if err := reader.List(ctx, list, options...); err != nil {
		log.FromContext(ctx).Error(err, "an event was not delivered; its object is looked at later all the same")
		return nil
	}
	var requests []reconcile.Request
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok {
			requests = append(requests, request(obj.GetNamespace(), obj.GetName()))
		}
		return nil
	})
	return requests
}

// watchSnapshots watches VolumeSnapshots from the moment on that their API is served.
type watchSnapshots struct {
	mgr     ctrl.Manager
	target  controller.Controller
	handler handler.EventHandler
}

// lookForAPI is how often a VolumeSnapshot API that is not there is looked for.
const lookForAPI = 10 * time.Second

// Start implements manager.Runnable. It returns when the watch was added.
func (w watchSnapshots) Start(ctx context.Context) error {
	kind := snapshotv1.SchemeGroupVersion.WithKind("VolumeSnapshot")
	err := wait.PollUntilContextCancel(ctx, lookForAPI, true, func(context.Context) (bool, error) {
		_, err := w.mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		return err == nil, nil
	})
	if err != nil {
		return nil //nolint:nilerr // the manager stops
	}
	return w.target.Watch(source.Kind[client.Object](w.mgr.GetCache(), &snapshotv1.VolumeSnapshot{}, w.handler))
}

// claimSource tells of claims that appear, are bound, or go.
func claimSource(claims cache.Cache, handle handler.EventHandler) source.Source {
	return source.Kind[client.Object](claims, claimMetadata(), handle)
}

func claimMetadata() *metav1.PartialObjectMetadata {
	claim := &metav1.PartialObjectMetadata{}
	claim.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
	return claim
}
