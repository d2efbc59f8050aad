package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/movertest"
	"example.com/pvcbackup/backup/scheduled"
	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/kittest"
	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/snapshottest"
)

var api = kittest.NewAPIServer(kittest.APIServerOptions{Scheme: scheme(), CRDPaths: []string{"crd"}})

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(addToScheme(s))
	return s
}

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	os.Exit(api.Main(m))
}

// TestADatabaseIsBackedUpUntilItGoes runs the operator on a real API server, with no rights but those of role.yaml.
// Storage and movers are stand-ins: there is no node.
func TestADatabaseIsBackedUpUntilItGoes(t *testing.T) {
	cluster := api.Start(t)
	playStorage(t, cluster.Client)
	script := movertest.NewScript()
	script.Plan = func(task backup.Task, _ int) *contract.Result {
		return &contract.Result{
			Outcome: contract.Succeeded, Repository: contract.RepositoryAbsent,
			SnapshotID: "s", RepositoryID: "r", KeyFingerprint: "k",
		}
	}
	inBackground(t, func(ctx context.Context) error {
		return run(ctx, restricted(t, cluster), func(ctrl.Manager) scheduled.Mover { return script })
	})
	db := &Database{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace(t), Name: "orders"}, Spec: DatabaseSpec{
		Storage: resource.MustParse("1Gi"),
		Backup:  scheduled.Spec{Schedule: "H 3 * * *", Storage: &scheduled.Storage{URL: "s3://bucket"}},
	}}
	require.NoError(t, cluster.Client.Create(t.Context(), db))
	nudge(t, cluster.Client, db)

	kittest.EventuallyObject(t, cluster.Client, db, time.Minute, func() error {
		if db.Status.LastBackup == nil || db.Status.Current != nil {
			return errors.New("there is no backup")
		}
		return nil
	})
	kittest.CheckStatus(t, db, kittest.Contract{})
	require.Equal(t, "Protected", db.Status.Conditions[0].Reason)
	entry := db.entry()
	require.NoError(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(entry), entry))

	require.NoError(t, cluster.Client.Delete(t.Context(), db))
	kittest.Eventually(t, time.Minute, func() error {
		if err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(db), &Database{}); !reconcilekit.IsGone(err) {
			return fmt.Errorf("it is still there: %w", err)
		}
		return nil
	})
	require.True(t, reconcilekit.IsGone(cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(entry), entry)))
	left, err := script.Tasks(t.Context(), backup.Owner{UID: db.UID})
	require.NoError(t, err)
	require.Empty(t, left)
	for _, seen := range snapshots(t, cluster.Client, db) {
		require.Equal(t, snapshot.Deleting, seen.State, seen.Name)
	}
}

func snapshots(t *testing.T, c client.Client, db *Database) []snapshot.Observation {
	t.Helper()
	list, err := snapshot.New(c, snapshot.Options{}).List(t.Context(), db.Namespace, snapshot.Owner{UID: db.UID}, nil)
	require.NoError(t, err)
	return list
}

func inBackground(t *testing.T, do func(ctx context.Context) error) {
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- do(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-stopped) })
}

// playStorage plays the CSI driver, whose class is the cluster's default.
func playStorage(t *testing.T, c client.Client) {
	driver := snapshottest.New(c, snapshottest.Options{})
	require.NoError(t, driver.Install(t.Context()))
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: snapshottest.StorageClass}}
	isDefault := []byte(`{"metadata":{"annotations":{"storageclass.kubernetes.io/is-default-class":"true"}}}`)
	require.NoError(t, c.Patch(t.Context(), class, client.RawPatch("application/merge-patch+json", isDefault)))
	inBackground(t, driver.Run)
}

// nudge stands for the events of Jobs, which the scripted movers do not have.
func nudge(t *testing.T, c client.Client, db *Database) {
	key := client.ObjectKeyFromObject(db)
	inBackground(t, func(ctx context.Context) error {
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(200 * time.Millisecond):
			}
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"nudge":"%d"}}}`, n)
			touched := &Database{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			err := c.Patch(ctx, touched, client.RawPatch("application/merge-patch+json", patch))
			if err != nil && !reconcilekit.IsGone(err) && ctx.Err() == nil {
				return err
			}
		}
	})
}

// restricted is the configuration of a user who may do what role.yaml says.
func restricted(t *testing.T, cluster *kittest.Cluster) *rest.Config {
	t.Helper()
	const user = "database-operator"
	text, err := os.ReadFile("role.yaml")
	require.NoError(t, err)
	subject := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	create := func(obj client.Object) { require.NoError(t, cluster.Client.Create(t.Context(), obj)) }
	documents := bytes.Split(text, []byte("\n---\n"))
	require.Len(t, documents, 2)
	role, own := &rbacv1.ClusterRole{}, &rbacv1.Role{}
	require.NoError(t, yaml.UnmarshalStrict(documents[0], role))
	require.NoError(t, yaml.UnmarshalStrict(documents[1], own))
	create(role)
	create(own)
	meta := metav1.ObjectMeta{Namespace: own.Namespace, Name: user}
	create(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: subject,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}})
	create(&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subject,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: own.Name}})
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return config
}

var _ scheduled.Object = (*Database)(nil)
