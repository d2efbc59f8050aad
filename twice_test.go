package pvcbackup_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/cli"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/jobmover"
	"example.com/pvcbackup/backup/localmover"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/backup/restore"
	"example.com/pvcbackup/backup/scheduled"
	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/drivers/all"
	v1 "example.com/pvcbackup/operator/api/v1"
	"example.com/pvcbackup/operator/app"
	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/kittest"
	"example.com/pvcbackup/schedule"
	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/stage"
)

// TestEverythingCanBeMadeTwiceInOneProcess finds whatever is global: registries, names, caches, goroutines.
func TestEverythingCanBeMadeTwiceInOneProcess(t *testing.T) {
	before := goleak.IgnoreCurrent()
	registry, server := prometheus.NewRegistry(), discovery()
	for range 2 {
		makeLibraries(t, registry)
		makeOperator(t, server.URL)
	}
	server.Close()
	goleak.VerifyNone(t, before)
}

func makeLibraries(t *testing.T, registry *prometheus.Registry) {
	ctx, scheme := t.Context(), runtime.NewScheme()
	require.NoError(t, snapshot.AddToScheme(scheme))
	c := kittest.FakeClient(scheme, &corev1.Namespace{})

	_, err := schedule.Spec{Cron: "H 3 * * *", TimeZone: "Europe/Berlin"}.Compile("seed")
	require.NoError(t, err)
	store, err := blobstore.Open(ctx, "mem://twice", &blobstore.Options{Openers: all.Openers()})
	require.NoError(t, err)
	r, err := repo.Init(ctx, store, "password", &repo.InitOptions{KeyOptions: repo.KeyOptions{Scrypt: repotest.Cheap}})
	require.NoError(t, err)
	lock, err := r.Lock(ctx, repo.LockOptions{Host: "twice"})
	require.NoError(t, err)
	require.NoError(t, lock.Unlock(ctx))
	require.NoError(t, store.Close())

	kit, err := reconcilekit.NewMetrics(registry)
	require.NoError(t, err)
	metrics, err := scheduled.NewMetrics(registry, nil)
	require.NoError(t, err)
	engine := func(context.Context, map[string]string, io.Writer) contract.Result { return contract.Result{} }
	mover := localmover.New(engine, localmover.Options{})
	_, err = scheduled.New(scheduled.Options{
		Client: c, Live: c, Mover: mover, Stores: scheduled.Stores{ClusterID: "c"}, KitMetrics: kit, Metrics: metrics,
	})
	require.NoError(t, err)
	mover.Close()
	require.NotNil(t, jobmover.New(jobmover.Options{Client: c, Reader: c, Image: "image"}))
	snapshots, stages := snapshot.New(c, snapshot.Options{}), stage.New(c, stage.Options{})
	require.NotNil(t, &backup.Runner{Snapshots: snapshots, Stages: stages, Mover: mover})
	require.NotNil(t, &restore.Runner{Live: c, Stages: stages, Mover: mover})
	none := func(string) string { return "" }
	require.Zero(t, cli.Run(ctx, []string{"version"}, cli.Options{Stdout: io.Discard, Stderr: io.Discard, Getenv: none}))
}

func makeOperator(t *testing.T, server string) {
	scheme := runtime.NewScheme()
	require.NoError(t, app.AddToScheme(scheme))
	options := app.DefaultOptions()
	options.ClusterID, options.MetricsAddress, options.ProbeAddress = "twice", "0", "0"
	_, err := app.New(t.Context(), &rest.Config{Host: server}, scheme, options)
	require.NoError(t, err)
}

// discovery is a server that tells which kinds there are, and nothing else.
func discovery() *httptest.Server {
	kinds := func(names ...string) (list []metav1.APIResource) {
		for _, kind := range names {
			list = append(list, metav1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind, Namespaced: true})
		}
		return list
	}
	served := map[string][]metav1.APIResource{
		"v1":                         kinds("Pod", "PersistentVolumeClaim"),
		"batch/v1":                   kinds("Job"),
		"snapshot.storage.k8s.io/v1": kinds("VolumeSnapshot"),
		v1.GroupVersion.String():     kinds("PVCBackup", "PVCRestore"),
	}
	answers := map[string]any{"/api": metav1.APIVersions{Versions: []string{"v1"}}}
	var groups metav1.APIGroupList
	for groupVersion, resources := range served {
		group, version, found := strings.Cut(groupVersion, "/")
		list := metav1.APIResourceList{GroupVersion: groupVersion, APIResources: resources}
		if !found {
			answers["/api/v1"] = list
			continue
		}
		answers["/apis/"+groupVersion] = list
		groups.Groups = append(groups.Groups, metav1.APIGroup{
			Name: group, Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: groupVersion, Version: version}},
		})
	}
	answers["/apis"] = groups
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answers[r.URL.Path])
	}))
}
