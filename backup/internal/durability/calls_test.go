package durability

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/copier"
	"example.com/pvcbackup/backup/maintain"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/backup/restorer"
	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/schedule/keep"
)

// envCalls says that one call in so many fails, beginning with a random one; 1 means each.
const envCalls = "DURABILITY_CALLS"

var errFault = fmt.Errorf("fault: %w", blobstore.ErrUnavailable)

// stallBudget is how long work on a store that stalls may take. Nothing else takes nearly as long.
const stallBudget = 2 * time.Second

// faults are the ways in which the n-th call of a store fails. Each is installed on a store that counts.
var faults = map[string]func(*repotest.Memory, *nth){
	"error": func(s *repotest.Memory, n *nth) {
		s.Before = func(string, string) error { return n.err() }
	},
	"answer lost": func(s *repotest.Memory, n *nth) {
		s.After = func(string, string) error { return n.err() }
	},
	"stall": func(s *repotest.Memory, n *nth) {
		s.Before = func(string, string) error {
			if n.now() {
				<-n.ctx.Done()
				return n.ctx.Err()
			}
			return nil
		}
	},
	"write dropped": func(s *repotest.Memory, n *nth) {
		s.Drop = func(string) bool { return n.now() }
	},
	"read cut short": func(s *repotest.Memory, n *nth) {
		s.Change = func(_ string, _ int64, data []byte) []byte {
			if n.now() {
				return data[:len(data)/2]
			}
			return data
		}
	},
	"wrong bytes": func(s *repotest.Memory, n *nth) {
		s.Change = func(_ string, _ int64, data []byte) []byte {
			if n.now() && len(data) > 0 {
				data[len(data)/2] ^= 4
			}
			return data
		}
	},
}

// nth says which call it is.
type nth struct {
	ctx       context.Context
	mu        sync.Mutex
	seen, hit int
}

func (n *nth) now() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen++
	return n.seen == n.hit
}

func (n *nth) err() error {
	if n.now() {
		return errFault
	}
	return nil
}

// jobs are the work whose calls fail. Each gets a store of its own that has two snapshots, and must return an error or
// have done what it says.
var jobs = map[string]func(ctx context.Context, c *calling) error{
	"backup": func(ctx context.Context, c *calling) error {
		r, err := repo.Open(ctx, c.store, password, nil)
		if err != nil {
			return err
		}
		done, err := archiver.Backup(ctx, r, c.source, archiver.Options{Host: "cluster", Path: "/ns/0", RunName: "run-9"})
		if err != nil {
			return err
		}
		c.expected[done.SnapshotID] = c.content
		return nil
	},
	"restore": func(ctx context.Context, c *calling) error {
		r, err := repo.Open(ctx, c.store, password, nil)
		if err != nil {
			return err
		}
		for id, want := range c.expected {
			target := c.t.TempDir()
			defer os.RemoveAll(target)
			if _, err := restorer.Restore(ctx, r, id, target, restorer.Options{}); err != nil {
				return err
			}
			if !maps.Equal(want, contents(c.t, target)) {
				c.t.Errorf("%s: a restore succeeded with something else", c.what)
			}
		}
		return nil
	},
	"check": func(ctx context.Context, c *calling) error {
		r, err := repo.Open(ctx, c.store, password, nil)
		if err != nil {
			return err
		}
		report, err := maintain.Check(ctx, r, maintain.CheckOptions{ReadData: true})
		if err == nil {
			err = report.Err()
		}
		if err == nil && report.Snapshots != len(c.expected) {
			c.t.Errorf("%s: a check succeeded and saw %d snapshots", c.what, report.Snapshots)
		}
		return err
	},
	"forget and prune": func(ctx context.Context, c *calling) error {
		r, err := repo.Open(ctx, c.store, password, nil)
		if err != nil {
			return err
		}
		if _, err := maintain.Forget(ctx, r, maintain.ForgetOptions{Rules: keep.Rules{Last: 1}}); err != nil {
			return err
		}
		plan, err := maintain.PlanPrune(ctx, r, maintain.PruneOptions{MaxUnused: -1, Grace: -1})
		if err != nil {
			return err
		}
		_, err = plan.Execute(ctx)
		return err
	},
	"copy": func(ctx context.Context, c *calling) error {
		from, err := repo.Open(ctx, c.other, password, nil)
		if err != nil {
			return err
		}
		to, err := repo.Open(ctx, c.store, password, nil)
		if err != nil {
			return err
		}
		all, err := from.Snapshots(ctx)
		if err != nil {
			return err
		}
		done, err := copier.Copy(ctx, from, to, all, copier.Options{})
		if err != nil {
			return err
		}
		for _, copied := range done.Copied {
			c.expected[copied.To] = c.elsewhere[copied.From]
		}
		return nil
	},
}

// calling is one try of a job.
type calling struct {
	t            testing.TB
	what         string
	store, other *repotest.Memory
	source       string
	content      map[string]string
	// expected is what the snapshots of the store hold, elsewhere those of the other one.
	expected, elsewhere map[repo.ID]map[string]string
}

func TestACallThatFailsInAnyWayIsNeverAFalseSuccess(t *testing.T) {
	tr, other := newTreasure(t), newTreasure(t)
	forgettable(t, tr)
	source := t.TempDir()
	fillFolder(t, source, 900, 200<<10)
	content := contents(t, source)
	every, tries, failures := number(t, envCalls, 25), 0, map[string]int{}
	for job, do := range jobs {
		for fault, install := range faults {
			step := every
			if fault == "stall" && step > 1 {
				step *= 3 // it takes time
			}
			for n := 1 + rand.IntN(step); ; n += step {
				c := &calling{t: t, what: fmt.Sprintf("%s, %s, call %d", job, fault, n), store: clone(tr.store), other: other.store,
					source: source, content: content, expected: maps.Clone(tr.snapshots), elsewhere: other.snapshots}
				budget := time.Minute
				if fault == "stall" {
					budget = stallBudget
				}
				ctx, cancel := context.WithTimeout(t.Context(), budget)
				call := &nth{ctx: ctx, hit: n}
				install(c.store, call)
				err := do(ctx, c)
				cancel()
				c.store.Before, c.store.After, c.store.Drop, c.store.Change = nil, nil, nil, nil
				if call.seen < n {
					require.NoError(t, err, c.what) // nothing failed: that were all of its calls
					break
				}
				if tries++; err != nil {
					failures[fault]++
				}
				c.judge(err)
			}
		}
	}
	t.Logf("%d calls failed; the work failed with them: %v", tries, failures)
}

// forgettable adds a snapshot of the first series, so that there is one to forget.
func forgettable(t *testing.T, tr *treasure) {
	t.Helper()
	source := t.TempDir()
	fillFolder(t, source, 500, 150<<10)
	tr.snapshots[tr.backup(t, tr.store, source, "/ns/0", "run-5")] = contents(t, source)
}

func clone(s *repotest.Memory) *repotest.Memory {
	c := repotest.NewMemory()
	for _, key := range s.Keys("") {
		c.Set(key, s.Bytes(key))
	}
	return c
}

// judge requires that every snapshot in the store is whole and known, and that those that must be there are.
func (c *calling) judge(failed error) {
	c.t.Helper()
	if err := check(c.t, c.store); err != nil && failed != nil && strings.Contains(c.what, "write dropped") {
		c.judgeDropped(failed) // the index was told of a pack before it turned out that the store had dropped it
	} else if err != nil {
		c.t.Errorf("%s (%v): the repository is damaged: %v", c.what, failed, err)
		return
	}
	r, err := repo.Open(c.t.Context(), c.store, password, nil)
	require.NoError(c.t, err)
	all, err := r.Snapshots(c.t.Context())
	require.NoError(c.t, err)
	there := map[repo.ID]bool{}
	for _, s := range all {
		there[s.ID] = true
	}
	for id := range c.expected {
		if !there[id] && !strings.HasPrefix(c.what, "forget") {
			c.t.Errorf("%s (%v): snapshot %s is gone, or was never there", c.what, failed, id.Short())
		}
	}
	if len(there) == 0 {
		c.t.Errorf("%s (%v): too many snapshots were removed", c.what, failed)
	}
}

// judgeDropped requires of a store that confirmed a write and dropped it that every snapshot restores whole, and that the
// next backup does not rely on what was dropped either.
func (c *calling) judgeDropped(failed error) {
	c.t.Helper()
	next := &calling{t: c.t, what: c.what + ", and the next backup", store: c.store, source: c.source, content: c.content, expected: c.expected}
	if err := jobs["backup"](c.t.Context(), next); err != nil {
		c.t.Logf("%s: %v", next.what, err)
	}
	for id, want := range c.expected {
		if err := restores(c.t, c.store, id, want); err != nil {
			c.t.Errorf("%s (%v): snapshot %s: %v", c.what, failed, id.Short(), err)
		}
	}
}
