package stage_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/snapshottest"
	"example.com/pvcbackup/snapshot/stage"
)

// documentedRules are the rules under "# RBAC" in a package's documentation.
func documentedRules(t *testing.T, file string) []rbacv1.PolicyRule {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "// # RBAC\n")
	require.True(t, found)
	var lines []string
	for _, line := range strings.Split(section, "\n") {
		if rule, ok := strings.CutPrefix(line, "//\t"); ok {
			lines = append(lines, rule)
		}
		if strings.HasPrefix(line, "// # ") {
			break
		}
	}
	var role rbacv1.ClusterRole
	require.NoError(t, yaml.UnmarshalStrict([]byte(strings.Join(lines, "\n")), &role))
	require.NotEmpty(t, role.Rules)
	return role.Rules
}

// as returns a client of a user who may do what the rules say and no more.
func as(t *testing.T, admin client.Client, user string, rules []rbacv1.PolicyRule) client.WithWatch {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	require.NoError(t, admin.Create(t.Context(), role))
	require.NoError(t, admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}))
	config := rest.CopyConfig(api.Start(t).Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.NewWithWatch(config, client.Options{Scheme: api.Start(t).Scheme})
	require.NoError(t, err)
	return c
}

func TestServerTheDocumentedRulesAreEnough(t *testing.T) {
	w := newWorld(t)
	snapshots := snapshot.New(as(t, w, "snapshots", documentedRules(t, "../doc.go")), snapshot.Options{Contents: true})
	staging := stage.New(as(t, w, "staging", documentedRules(t, "doc.go")), stage.Options{})
	nobody := snapshot.New(as(t, w, "nobody", nil), snapshot.Options{})
	_, err := nobody.Observe(t.Context(), w.ns, "s")
	require.True(t, apierrors.IsForbidden(err), "the server checks rules at all: %v", err)

	claim, err := snapshots.ResolveClaim(t.Context(), w.ns, "data")
	require.NoError(t, err)
	class, err := snapshots.ChooseClass(t.Context(), claim.Driver, "")
	require.NoError(t, err)
	r := snapshot.Request{Namespace: w.ns, Name: "s", Claim: "data", Class: class.Name, Owner: me}
	var seen snapshot.Observation
	w.play(t, func() error {
		if seen, err = snapshots.Ensure(t.Context(), r); apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
		return snapshot.Judge(seen, snapshot.Deadlines{}, time.Now())
	})
	require.NotEmpty(t, seen.Handle)
	_, err = snapshots.List(t.Context(), w.ns, me, nil)
	require.NoError(t, err)

	staged := w.request(seen)
	staged.StorageClass = snapshottest.StorageClassRetain
	var got stage.Observation
	w.play(t, func() error {
		if got, err = staging.Ensure(t.Context(), staged); apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
		return stage.Judge(got, 0, time.Now())
	})
	_, err = staging.EnsureEmpty(t.Context(), stage.EmptyRequest{Namespace: w.ns, Name: "empty", Owner: me, Size: claim.Capacity})
	require.NoError(t, err)
	_, err = staging.Delete(t.Context(), got.Ref(), me)
	require.NoError(t, err)
	w.play(t, func() error {
		swept, err := staging.Sweep(t.Context(), w.ns, me, nil)
		if apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
		if err == nil && len(swept.Deleting) > 0 {
			err = fmt.Errorf("still deleting %v", swept.Deleting)
		}
		return err
	})
	_, err = snapshots.Delete(t.Context(), seen.Ref(), me)
	require.NoError(t, err)
}
