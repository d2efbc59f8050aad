package app_test

import (
	"errors"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"example.com/pvcbackup/reconcilekit/kittest"
)

// gone waits until an object is gone.
func (p *place) gone(obj client.Object) {
	p.Helper()
	kittest.Eventually(p, patience, func() error {
		err := p.admin.Get(p.Context(), client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("it is there, with the finalizers %v", obj.GetFinalizers()))
	})
}

// series returns the names of the metrics that have a series of an object of the test.
func (p *place) series(name string) []string {
	p.Helper()
	families, err := metrics.Registry.Gather()
	require.NoError(p, err)
	var found []string
	for _, family := range families {
		for _, metric := range family.Metric {
			labels := map[string]string{}
			for _, label := range metric.Label {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["namespace"] == p.namespace && labels["name"] == name {
				found = append(found, family.GetName())
			}
		}
	}
	return found
}

func (p *place) snapshots() []string {
	p.Helper()
	var list snapshotv1.VolumeSnapshotList
	require.NoError(p, p.admin.List(p.Context(), &list, client.InNamespace(p.namespace)))
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	return names
}

func isEmpty(found []string) error {
	if len(found) > 0 {
		return fmt.Errorf("there still are %v", found)
	}
	return nil
}
