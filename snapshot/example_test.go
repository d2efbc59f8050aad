package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/kittest"
	"example.com/pvcbackup/snapshot"
)

func ExampleName() {
	fmt.Println(snapshot.Name("backup", "orders", "20260102t030405z"))
	fmt.Println(snapshot.Name("backup", "a-b", "c") == snapshot.Name("backup", "a", "b-c"))
	// Output:
	// backup-orders-20260102t030405z-ienoephypgzwg6oj
	// false
}

func ExampleChoose() {
	class := func(name, driver string) snapshotv1.VolumeSnapshotClass {
		return snapshotv1.VolumeSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Driver: driver}
	}
	classes := []snapshotv1.VolumeSnapshotClass{
		class("fast", "csi.example.com"), class("slow", "csi.example.com"), class("nfs", "nfs.example.com"),
	}
	chosen, err := snapshot.Choose(classes, "nfs.example.com", "")
	fmt.Println(chosen.Name, chosen.Why, err)
	_, err = snapshot.Choose(classes, "csi.example.com", "")
	fmt.Println(errors.Is(err, snapshot.ErrClassAmbiguous), err)
	// Output:
	// nfs only <nil>
	// true 2 VolumeSnapshotClasses fit and none is annotated as default; name one; classes of driver "csi.example.com": fast, slow
}

func ExampleNew() {
	scheme := runtime.NewScheme()
	_ = snapshot.AddToScheme(scheme)
	// In an operator the client is mgr.GetClient(), and Options.Live mgr.GetAPIReader().
	snapshots := snapshot.New(kittest.FakeClient(scheme), snapshot.Options{})
	seen, err := snapshots.Observe(context.Background(), "default", "nothing")
	fmt.Println(seen.State, err)
	_, err = snapshots.ResolveClaim(context.Background(), "default", "nothing")
	fmt.Println(errors.Is(err, snapshot.ErrClaimMissing), reconcilekit.Reason(err), reconcilekit.RetryAfter(err))
	// Output:
	// Absent <nil>
	// true ClaimMissing 30s
}

func ExampleLook() {
	taken := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	vs := &snapshotv1.VolumeSnapshot{Status: &snapshotv1.VolumeSnapshotStatus{CreationTime: &taken}}
	seen := snapshot.Look(vs)
	fmt.Println(seen.State, seen.TakenAt)
	// Output: Taken 2026-01-02 03:04:05 +0000 UTC
}

func ExampleJudge() {
	created := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	seen := snapshot.Observation{State: snapshot.Failing, Namespace: "ns", Name: "s", Created: created, LastError: "pool is full"}
	deadlines := snapshot.Deadlines{Taken: 10 * time.Minute}
	fmt.Println(snapshot.Judge(seen, deadlines, created.Add(time.Minute)))
	fmt.Println(snapshot.Judge(seen, deadlines, created.Add(time.Hour)))
	// Output:
	// VolumeSnapshot ns/s is Failing; the last error seen: pool is full
	// VolumeSnapshot ns/s is still Failing after 1h0m0s; deadline SnapshotTaken is 10m0s; the last error seen: pool is full
}

func ExampleIsGone() {
	resource := schema.GroupResource{Group: "snapshot.storage.k8s.io", Resource: "volumesnapshots"}
	fmt.Println(snapshot.IsGone(apierrors.NewNotFound(resource, "s")))
	// Output: true
}

func ExampleIsNotServed() {
	err := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot"}}
	fmt.Println(snapshot.IsNotServed(err), snapshot.IsGone(err))
	// Output: true false
}

func ExampleAPIError() {
	missing := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot"}}
	err := snapshot.APIError("create", "VolumeSnapshot ns/s", missing)
	fmt.Println(errors.Is(err, snapshot.ErrNotInstalled), reconcilekit.Classify(err))
	// Output: true Waiting
}

// A package that builds on this one has failures of its own, which reconcilekit understands as well.
func ExampleNewKind() {
	errFrozen := snapshot.NewKind("DatabaseFrozen", false, time.Minute, "the database is frozen")
	err := &snapshot.Error{Kind: errFrozen, Subject: "Database ns/orders"}
	fmt.Println(err, errors.Is(err, errFrozen), reconcilekit.RetryAfter(err))
	// Output: Database ns/orders: the database is frozen true 1m0s
}

func ExampleOwner_Owns() {
	owner, vs := snapshot.Owner{UID: "5f3a"}, &snapshotv1.VolumeSnapshot{}
	fmt.Println(owner.Owns(vs))
	owner.Stamp(vs, nil, nil)
	fmt.Println(owner.Owns(vs))
	// Output:
	// false
	// true
}
