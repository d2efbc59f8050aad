package snapshot

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// AddToScheme adds every type that this package and snapshot/stage use.
func AddToScheme(s *runtime.Scheme) error {
	builder := runtime.NewSchemeBuilder(snapshotv1.AddToScheme, corev1.AddToScheme, storagev1.AddToScheme)
	return builder.AddToScheme(s)
}
