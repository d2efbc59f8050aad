package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/pvcbackup/backup/restorer/treecmp"
	"example.com/pvcbackup/backup/scheduled"
	v1 "example.com/pvcbackup/operator/api/v1"
	"example.com/pvcbackup/reconcilekit/kittest/controlplane"
)

const (
	claim    = "data"
	newClaim = "data-restored"
)

func (d *demo) fill(ctx context.Context) error {
	manifest := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}\n"
	manifest += d.claim(claim, "2Gi")
	if d.store.volume {
		manifest += d.claim("backups", "2Gi")
	}
	if len(d.store.env) > 0 {
		secret, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Secret", "stringData": d.store.env,
			"metadata": map[string]string{"name": scheduled.DefaultCredentials, "namespace": namespace},
		})
		if err != nil {
			return err
		}
		manifest += "---\n" + string(secret) + "\n"
	}
	if _, err := d.kubectlWith(ctx, manifest, "apply", "-f", "-"); err != nil {
		return err
	}
	return d.runFiles(ctx, "fill", "fill", "/data", d.root, fmt.Sprint(d.mib))
}

// claim is a claim of the class whose volumes wait for their first Pod, as in most clusters.
func (d *demo) claim(name, size string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: %s, namespace: %s}\n"+
		"spec: {accessModes: [ReadWriteOnce], storageClassName: %s, resources: {requests: {storage: %s}}}\n",
		name, namespace, controlplane.WaitingClass, size)
}

// runFiles runs the workload in a Pod that mounts the claim, and waits for its end.
func (d *demo) runFiles(ctx context.Context, name string, args ...string) error {
	argText, err := json.Marshal(args)
	if err != nil {
		return err
	}
	volumes, mounts := "{name: data, persistentVolumeClaim: {claimName: "+claim+"}}", "{name: data, mountPath: /data}"
	if d.store.volume {
		volumes += ", {name: backups, persistentVolumeClaim: {claimName: backups}}"
		mounts += ", {name: backups, mountPath: /backups}"
	}
	pod := fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s}
spec:
  restartPolicy: Never
  containers:
  - {name: files, image: %s, args: %s, volumeMounts: [%s]}
  volumes: [%s]
`, name, namespace, filesImage, argText, mounts, volumes)
	if _, err := d.kubectlWith(ctx, pod, "apply", "-f", "-"); err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		got, err := d.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && got.Status.Phase == "Failed" {
			return false, fmt.Errorf("the Pod %s failed: %+v", name, got.Status.ContainerStatuses)
		}
		return err == nil && got.Status.Phase == "Succeeded", nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the Pod %s: %w", name, err)
	}
	fmt.Printf("  the Pod %s is done\n", name)
	_, err = d.kubectl(ctx, "delete", "pod", name, "-n", namespace)
	return err
}

// manifest is what a user writes.
func (d *demo) manifest() string {
	return fmt.Sprintf(`apiVersion: storage.example.com/v1
kind: PVCBackup
metadata: {name: demo}
spec: {pvcName: %s, schedule: "* * * * *", %s}
`, claim, d.store.spec)
}

func (d *demo) apply(ctx context.Context) error {
	fmt.Fprint(indent{os.Stdout}, d.manifest())
	_, err := d.kubectlWith(ctx, d.manifest(), "apply", "-n", namespace, "-f", "-")
	return err
}

func (d *demo) get(ctx context.Context) (*v1.PVCBackup, error) {
	var obj v1.PVCBackup
	return &obj, d.read(ctx, &obj, "pvcbackup", "demo")
}

func (d *demo) read(ctx context.Context, into any, args ...string) error {
	out, err := d.kubectl(ctx, append([]string{"get", "-n", namespace, "-o", "json"}, args...)...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}

// awaitBackup waits for a success of another slot than the one before, and shows it.
func (d *demo) awaitBackup(ctx context.Context, kind string, limit time.Duration) error {
	before, err := d.get(ctx)
	if err != nil {
		return err
	}
	seen, last := "", ""
	if before.Status.LastSuccess != nil && kind != "Create" {
		seen = before.Status.LastSuccess.Slot
	}
	err = wait.PollUntilContextTimeout(ctx, 300*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		obj, err := d.get(ctx)
		if err != nil {
			return false, err
		}
		if obj.Status.Phase != last {
			last = obj.Status.Phase
			fmt.Printf("  [%4.0fs] %s\n", time.Since(d.start).Seconds(), last)
		}
		if a := obj.Status.LastAttempt; a != nil && a.Outcome != "Succeeded" {
			return false, fmt.Errorf("the run of slot %s ended with %s, %s: %s", a.Slot, a.Outcome, a.Reason, a.Message)
		}
		success := obj.Status.LastSuccess
		return success != nil && success.Slot != seen && obj.Status.LastAttempt.Kind == kind, nil
	})
	if err != nil {
		out, _ := d.kubectl(context.WithoutCancel(ctx), "get", "pvcbackup,job,pod,pvc,volumesnapshot", "-n", namespace, "-o", "yaml")
		_ = os.WriteFile(filepath.Join(d.dir, "objects.yaml"), []byte(out), 0o600)
		return fmt.Errorf("waiting for a backup: %w", err)
	}
	return d.show(ctx, "get", "pvcbackups")
}

func (d *demo) first(ctx context.Context) error {
	if err := d.awaitBackup(ctx, "Create", time.Minute); err != nil {
		return err
	}
	return d.show(ctx, "get", "events", "--field-selector=involvedObject.kind=PVCBackup",
		"-o", "custom-columns=TYPE:.type,REASON:.reason,MESSAGE:.message")
}

func (d *demo) second(ctx context.Context) error {
	if err := d.runFiles(ctx, "change", "change", "/data"); err != nil {
		return err
	}
	return d.awaitBackup(ctx, "Scheduled", 100*time.Second)
}

func (d *demo) third(ctx context.Context) error {
	if err := d.show(ctx, "annotate", "pvcbackup", "demo", scheduled.AnnotationTrigger+"=please"); err != nil {
		return err
	}
	if err := d.awaitBackup(ctx, "Manual", 100*time.Second); err != nil {
		return err
	}
	return d.show(ctx, "get", "volumesnapshots,jobs")
}

// metrics shows some of what Prometheus would scrape.
func (d *demo) metrics(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.metric+"/metrics", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4<<20))
	if err != nil {
		return err
	}
	shown := map[string]int{}
	for line := range strings.Lines(string(text)) {
		for _, name := range []string{"pvcbackup_", "controller_runtime_reconcile_total{", "controller_runtime_reconcile_errors_total{", "workqueue_depth{"} {
			if strings.HasPrefix(line, name) {
				shown[name]++
				fmt.Print("    ", line)
			}
		}
	}
	if len(shown) != 4 {
		return fmt.Errorf("some metrics are missing: there are %v", shown)
	}
	return nil
}

// lose stops the schedule, keeps a copy of the files to compare with, and deletes the claim.
func (d *demo) lose(ctx context.Context) error {
	if err := d.show(ctx, "patch", "pvcbackup", "demo", "--type=merge", "-p", `{"spec":{"suspend":true}}`); err != nil {
		return err
	}
	if err := d.awaitIdle(ctx); err != nil {
		return err
	}
	dir, err := d.claimDir(ctx, claim)
	if err != nil {
		return err
	}
	d.lost = filepath.Join(d.dir, "lost")
	if out, err := exec.CommandContext(ctx, "cp", "-a", dir, d.lost).CombinedOutput(); err != nil {
		return fmt.Errorf("copying the files to compare with: %w: %s", err, out)
	}
	return d.show(ctx, "delete", "pvc", claim)
}

// awaitIdle waits until no run is in flight and no Job is left.
func (d *demo) awaitIdle(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 300*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		obj, err := d.get(ctx)
		if err != nil {
			return false, err
		}
		jobs, err := d.client.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(jobs.Items) == 0 && obj.Status.Current == nil && obj.Status.NextBackup == nil, err
	})
}

// claimDir returns the folder that is the volume of a claim.
func (d *demo) claimDir(ctx context.Context, name string) (string, error) {
	pvc, err := d.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	pv, err := d.client.CoreV1().PersistentVolumes().Get(ctx, pvc.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return pv.Spec.CSI.VolumeAttributes[controlplane.DirectoryAttribute], nil
}

func (d *demo) restore(ctx context.Context) error {
	manifest := fmt.Sprintf(`apiVersion: storage.example.com/v1
kind: PVCRestore
metadata: {name: demo}
spec:
  source: {pvcBackup: demo}
  target: {pvcName: %s, create: {size: 2Gi, storageClassName: %s}}
`, newClaim, controlplane.WaitingClass)
	fmt.Fprint(indent{os.Stdout}, manifest)
	if _, err := d.kubectlWith(ctx, manifest, "apply", "-n", namespace, "-f", "-"); err != nil {
		return err
	}
	var obj v1.PVCRestore
	err := wait.PollUntilContextTimeout(ctx, 300*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		obj = v1.PVCRestore{}
		err := d.read(ctx, &obj, "pvcrestore", "demo")
		return err == nil && obj.Status.Completed != nil, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the restore: %w", err)
	}
	if err := d.show(ctx, "get", "pvcrestores,pvc"); err != nil {
		return err
	}
	for _, c := range obj.Status.Conditions {
		if c.Type == v1.ConditionSucceeded && c.Status != metav1.ConditionTrue {
			return fmt.Errorf("the restore failed, %s: %s", c.Reason, c.Message)
		}
	}
	d.restored = fmt.Sprintf("%d files, %d bytes", obj.Status.Files, obj.Status.Bytes)
	for _, note := range obj.Status.Notes {
		fmt.Println("  note:", note)
	}
	return nil
}

func (d *demo) prove(ctx context.Context) error {
	dir, err := d.claimDir(ctx, newClaim)
	if err != nil {
		return err
	}
	return d.compare(dir, false)
}

// compare compares a restored tree with the lost one: contents, modes, times, links, attributes and owners.
func (d *demo) compare(dir string, skipRoot bool) error {
	differences, err := treecmp.Compare(d.lost, dir, treecmp.Options{Owners: true, SkipRoot: skipRoot})
	if err != nil {
		return err
	}
	if len(differences) > 0 {
		return fmt.Errorf("%d differences, the first of them: %v", len(differences), differences[0])
	}
	fmt.Println("  contents, modes, times, links, attributes and owners are equal: no difference")
	return nil
}

// restic checks and restores the repository with the stock program.
func (d *demo) restic(ctx context.Context) error {
	obj, err := d.get(ctx)
	if err != nil {
		return err
	}
	secret, err := d.client.CoreV1().Secrets(namespace).Get(ctx, obj.Status.Repository.GeneratedKey, metav1.GetOptions{})
	if err != nil {
		return err
	}
	repository := d.store.resticURL
	if repository == "" {
		if repository, err = d.localCopy(ctx); err != nil {
			return err
		}
		fmt.Println("  restic cannot address this store, so it reads a copy of its objects")
	}
	env := append(os.Environ(), "RESTIC_REPOSITORY="+repository, "RESTIC_PASSWORD="+string(secret.Data["password"]),
		"RESTIC_CACHE_DIR="+filepath.Join(d.dir, "restic-cache"))
	for name, value := range d.store.env {
		env = append(env, name+"="+value)
	}
	target := filepath.Join(d.dir, "restic-restored")
	for _, args := range [][]string{
		{"snapshots"},
		{"check", "--read-data"},
		{"restore", "latest:/data", "--target", target},
	} {
		fmt.Printf("  $ restic %s\n", strings.Join(args, " "))
		cmd := exec.CommandContext(ctx, filepath.Join(d.root, ".cache/tools/restic"), args...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		fmt.Fprint(indent{os.Stdout}, string(out))
		if err != nil {
			return fmt.Errorf("restic %s: %w", args[0], err)
		}
	}
	// restic does not restore the mode and times of the folder that it restores into.
	return d.compare(target, true)
}

func (d *demo) summary() {
	took := time.Since(d.start).Round(time.Second)
	fmt.Printf(`
Done in %s (budget %s).
  Three backups were taken of the claim %q: one at once, one on schedule, one on request.
  The claim was deleted and came back as %q (%s), equal to what was lost.
  The stock restic checked every byte of the same repository and restored the same files.
Where to look: operator/config/samples for manifests, docs/recovery.md for a restore with only the bucket,
"make run" to use the operator on the cluster that kubectl points to.
`, took, budget, claim, newClaim, d.restored)
	if took > budget {
		fmt.Printf("This took longer than the budget of %s: is the machine busy with something else?\n", budget)
	}
}
