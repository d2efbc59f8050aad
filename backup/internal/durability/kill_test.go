package durability

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/internal/edgetree"
	"example.com/pvcbackup/backup/maintain"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/backup/restorer"
)

// envKills says how often a process is killed.
const envKills = "DURABILITY_KILLS"

// killing is a repository that is worked on by processes that are killed, another one that is copied to, and what is
// known of both.
type killing struct {
	t          *testing.T
	rnd        *rand.Rand
	here, copy *folder
	source     string
	passwords  []string // that open the repository: two while a change was interrupted
	round      int64
	known      map[repo.ID]map[string]string // what each snapshot holds
	took       map[string]time.Duration      // how long each kind of work took under its lock
	kills      map[string]int
	midway     int // kills that left an object behind, or took one away
}

// works are what is killed. Backups write most, so they come more often.
var works = []struct {
	name  string
	twice bool // when it is called again after it was done, it has nothing to do
	call  func(*killing) *exec.Cmd
}{
	{"backup", true, func(k *killing) *exec.Cmd {
		return tool(k.here.env(k.passwords[0]), "backup", k.source, "--host", "cluster", "--path", "/ns/claim")
	}},
	{"copy", true, func(k *killing) *exec.Cmd {
		env := k.copy.env(password)
		env["PVCBACKUP_FROM_REPOSITORY"], env["PVCBACKUP_FROM_PASSWORD"] = k.here.url(), k.passwords[0]
		return tool(env, "copy")
	}},
	{"repair index", true, func(k *killing) *exec.Cmd { return tool(k.here.env(k.passwords[0]), "repair", "index") }},
	{"forget", true, func(k *killing) *exec.Cmd {
		return tool(k.here.env(k.passwords[0]), "forget", "--keep-last", "3")
	}},
	{"key change", false, func(k *killing) *exec.Cmd {
		env := k.here.env(k.passwords[0])
		env["PVCBACKUP_NEW_PASSWORD"] = fmt.Sprint("password ", k.round)
		return tool(env, "keys", "passwd")
	}},
	{"prune", true, func(k *killing) *exec.Cmd {
		return tool(k.here.env(k.passwords[0]), "prune", "--max-unused", "0", "--grace", "1ns")
	}},
}

func TestAKilledProcessLosesNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	k := &killing{
		t: t, rnd: rand.New(rand.NewPCG(seed, 1)), source: t.TempDir(), passwords: []string{password},
		known: map[repo.ID]map[string]string{}, took: map[string]time.Duration{}, kills: map[string]int{},
	}
	k.here = newFolder(t, repo.InitOptions{})
	k.copy = newFolder(t, repo.InitOptions{Polynomial: k.here.open(t, password).Polynomial()})
	wanted, done := number(t, envKills, 4), 0
	for !t.Failed() && done < wanted {
		for _, work := range works {
			k.change(work.name == "backup")
			if k.took[work.name] == 0 { // how long it takes is not known
				k.finish(work.name, work.call(k))
				k.change(work.name == "backup")
			}
			if !k.kill(work.name, work.call(k)) {
				continue
			}
			if done++; done%25 == 0 {
				k.askRestic()
				t.Logf("%d kills %v, %d of them when something was written already", done, k.kills, k.midway)
			}
			if done == wanted {
				break
			}
		}
	}
	k.clean()
	t.Logf("%d kills %v, %d of them when something was written already", done, k.kills, k.midway)
}

// change makes a new state of the source, if there is to be one.
func (k *killing) change(really bool) {
	if k.round++; !really {
		return
	}
	for i := range int64(8) {
		name := filepath.Join(k.source, fmt.Sprint("dir", k.rnd.IntN(4)), fmt.Sprint("file", k.rnd.IntN(8)))
		require.NoError(k.t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(k.t, os.WriteFile(name, edgetree.Random(k.round*100+i, 1+k.rnd.IntN(600<<10)), 0o644))
	}
}

// lockTaken is about how long a lock is there before it counts.
const lockTaken = 190 * time.Millisecond

// begin starts work, and returns when its lock is taken, or it is over.
func (k *killing) begin(name string, cmd *exec.Cmd) (ended chan error) {
	k.t.Helper()
	require.NoError(k.t, cmd.Start())
	ended = make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for locked := name == "key change"; !locked; { // that one takes none
		look := 2 * time.Millisecond
		if locked = k.here.locked(k.t) || k.copy.locked(k.t); locked {
			look = lockTaken
		}
		select {
		case err := <-ended:
			ended <- err
			return ended
		case <-time.After(look):
		}
	}
	return ended
}

// finish lets work end, which must be a success.
func (k *killing) finish(name string, cmd *exec.Cmd) {
	k.t.Helper()
	ended := k.begin(name, cmd)
	began := time.Now()
	if err := <-ended; err != nil {
		k.t.Fatalf("%s: %v\n%s", name, err, cmd.Stdout)
	}
	k.took[name] = time.Since(began) + time.Millisecond
	k.over(name)
}

// over is what follows a success: what it left is looked at after the next kill.
func (k *killing) over(name string) {
	k.t.Helper()
	k.tryPasswords()
	k.remember(name, k.here.open(k.t, k.passwords[0]))
}

// kill kills work at a moment of its time, looks at what is left, and lets it be done again. It reports whether the work
// was not over before.
func (k *killing) kill(name string, cmd *exec.Cmd) bool {
	k.t.Helper()
	before := append(k.here.objects(k.t), k.copy.objects(k.t)...)
	ended := k.begin(name, cmd)
	select {
	case err := <-ended:
		if err != nil {
			k.t.Fatalf("%s: %v\n%s", name, err, cmd.Stdout)
		}
		k.over(name)
		return false
	case <-time.After(time.Duration(k.rnd.Int64N(int64(k.took[name])))):
	}
	if err := cmd.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
		require.NoError(k.t, err)
	}
	err := <-ended
	if err == nil {
		k.over(name)
		return false
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(k.t, status.Signaled() && status.Signal() == syscall.SIGKILL, "%s: %v\n%s", name, err, cmd.Stdout)
	k.kills[name]++
	if !slices.Equal(before, append(k.here.objects(k.t), k.copy.objects(k.t)...)) {
		k.midway++
	}
	k.settle(name)
	for _, w := range works {
		if w.name == name && (w.twice || len(k.passwords) > 1 || k.passwords[0] != fmt.Sprint("password ", k.round)) {
			k.finish(name, w.call(k))
		}
	}
	return true
}

// settle removes the lock of a process that is no more, and holds the repositories against what is known of them.
func (k *killing) settle(name string) {
	k.t.Helper()
	k.tryPasswords()
	k.here.unlock(k.t)
	k.copy.unlock(k.t)
	here := k.here.open(k.t, k.passwords[0])
	all := k.remember(name, here)
	if len(all) == 0 {
		return
	}
	k.sound(here)
	k.sound(k.copy.open(k.t, password))
	for _, i := range []int{k.rnd.IntN(len(all)), len(all) - 1} {
		k.restores(here, all[i].ID, k.known[all[i].ID])
	}
	copies, err := k.copy.open(k.t, password).Snapshots(k.t.Context())
	require.NoError(k.t, err)
	if len(copies) > 0 {
		last := copies[len(copies)-1]
		if content := k.known[*last.Original]; content != nil {
			k.restores(k.copy.open(k.t, password), last.ID, content)
		}
	}
}

// remember holds the snapshots against those that were there before, and learns which are there now.
func (k *killing) remember(name string, here *repo.Repository) []repo.SnapshotInfo {
	k.t.Helper()
	all, err := here.Snapshots(k.t.Context())
	require.NoError(k.t, err)
	now := map[repo.ID]map[string]string{}
	for _, s := range all {
		content := k.known[s.ID]
		if content == nil {
			require.True(k.t, strings.HasPrefix(name, "backup"), "%s made a snapshot", name)
			content = contents(k.t, k.source)
		}
		now[s.ID] = content
	}
	if removed := len(k.known) - len(now); !strings.HasPrefix(name, "forget") {
		require.LessOrEqual(k.t, removed, 0, "%s took a snapshot away", name)
	}
	if len(k.known) >= 3 {
		require.GreaterOrEqual(k.t, len(now), 3, "too many were forgotten")
	}
	k.known = now
	return all
}

// tryPasswords finds out which passwords open: the one before, the one that a change was to make, or both.
func (k *killing) tryPasswords() {
	candidates := append(slices.Clone(k.passwords), fmt.Sprint("password ", k.round))
	slices.Sort(candidates)
	k.passwords = slices.DeleteFunc(slices.Compact(candidates), func(p string) bool {
		_, err := repo.Open(k.t.Context(), k.here.store, p, nil)
		return err != nil
	})
	require.NotEmpty(k.t, k.passwords, "no password opens the repository")
}

func (f *folder) locked(t testing.TB) bool {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(f.dir, "locks"))
	require.True(t, err == nil || os.IsNotExist(err), "%v", err)
	return len(entries) > 0
}

// unlock removes every lock, as "unlock --all" does.
func (f *folder) unlock(t testing.TB) {
	t.Helper()
	_, err := f.store.DeleteAll(t.Context(), "locks/")
	require.NoError(t, err)
}

// sound requires that a check of everything finds nothing but packs that no index lists.
func (k *killing) sound(r *repo.Repository) {
	k.t.Helper()
	report, err := maintain.Check(k.t.Context(), r, maintain.CheckOptions{ReadData: true})
	require.NoError(k.t, err)
	require.NoError(k.t, report.Err())
	for _, note := range report.Notes {
		require.Contains(k.t, note, "in no index", "a kill left something else")
	}
}

func (k *killing) restores(r *repo.Repository, snapshot repo.ID, want map[string]string) {
	k.t.Helper()
	target := k.t.TempDir()
	_, err := restorer.Restore(k.t.Context(), r, snapshot, target, restorer.Options{})
	require.NoError(k.t, err)
	if diff := cmp.Diff(want, contents(k.t, target)); diff != "" {
		k.t.Fatalf("snapshot %s: -want +got:\n%s", snapshot.Short(), diff)
	}
	require.NoError(k.t, os.RemoveAll(target))
}

// askRestic lets the stock program judge.
func (k *killing) askRestic() {
	k.t.Helper()
	repotest.NewRestic(k.t, k.here.dir, k.passwords[0]).Run("check", "--read-data")
	repotest.NewRestic(k.t, k.copy.dir, password).Run("check", "--read-data")
}

// clean prunes both, after which nothing is left that is not needed.
func (k *killing) clean() {
	k.t.Helper()
	for _, f := range []*folder{k.here, k.copy} {
		word := k.passwords[0]
		if f == k.copy {
			word = password
		}
		cmd := tool(f.env(word), "prune", "--max-unused", "0", "--grace", "1ns")
		require.NoError(k.t, cmd.Run(), "%s", cmd.Stdout)
		report, err := maintain.Check(k.t.Context(), f.open(k.t, word), maintain.CheckOptions{ReadData: true})
		require.NoError(k.t, err)
		require.NoError(k.t, report.Err())
		require.Empty(k.t, report.Notes)
	}
	k.askRestic()
}

// objects returns the keys of all objects but locks.
func (f *folder) objects(t testing.TB) (keys []string) {
	t.Helper()
	for object, err := range f.store.List(t.Context(), "") {
		require.NoError(t, err)
		if !strings.HasPrefix(object.Key, "locks/") {
			keys = append(keys, f.dir+"/"+object.Key)
		}
	}
	return keys
}

// contents returns a hash for every file below a folder.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	}))
	return files
}
