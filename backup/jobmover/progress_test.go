package jobmover

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
)

// logs answers with a line, or an error, or never.
type logs struct {
	mu   sync.Mutex
	line string
	err  error
	hang bool
	asks int
}

func (l *logs) asked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asks
}

func (l *logs) Tail(ctx context.Context, _, _, _ string) (string, error) {
	l.mu.Lock()
	l.asks++
	line, err, hang := l.line, l.err, l.hang
	l.mu.Unlock()
	if hang {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return line, err
}

func TestProgressIsReadAtMostEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logs{line: contract.Progress{Stage: "reading", Bytes: 5}.Line()}
		mover := moverWithRunningPod(log)
		for range 21 {
			state, err := mover.Poll(t.Context(), testTask(), 1)
			require.NoError(t, err)
			if diff := cmp.Diff(&contract.Progress{Stage: "reading", Bytes: 5}, state.Progress); diff != "" {
				t.Fatalf("-want +got:\n%s", diff)
			}
			time.Sleep(time.Second)
		}
		require.Equal(t, 3, log.asked())
	})
}

func TestALogThatIsNeverDeliveredBlocksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logs{hang: true}
		mover := moverWithRunningPod(log)
		begun := time.Now()
		for range 10 {
			state, err := mover.Poll(t.Context(), testTask(), 1)
			require.NoError(t, err)
			require.Equal(t, backup.MoverRunning, state.Phase)
		}
		require.LessOrEqual(t, time.Since(begun), logPatience)
		require.Equal(t, 1, log.asked())
		time.Sleep(logTimeout) // and then nothing of it is left, or synctest fails
	})
}

func TestReadersInFlightAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logs{hang: true}
		reader := newProgressReader(Options{Logs: log}.withDefaults())
		for i := range 3 * logReaders {
			pod := testPod(testJob(testTask(), 1), running)
			pod.UID = types.UID(rune('a' + i))
			reader.begin(t.Context(), pod)
		}
		synctest.Wait()
		require.Equal(t, logReaders, log.asked())
		time.Sleep(logTimeout)
	})
}

func TestNoProgressIsJudgedByTheLogAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*logs, int)
		ends   bool
	}{
		"the same line":       {func(*logs, int) {}, true},
		"only the rate falls": {func(l *logs, i int) { l.line = contract.Progress{Bytes: 5, Rate: int64(100 - i), ETA: int64(i)}.Line() }, true},
		"bytes grow":          {func(l *logs, i int) { l.line = contract.Progress{Bytes: int64(i)}.Line() }, false},
		"the log fails":       {func(l *logs, _ int) { l.err = errors.New("node down") }, false},
		"the log hangs":       {func(l *logs, _ int) { l.hang = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &logs{line: contract.Progress{Bytes: 5}.Line()}
				mover := moverWithRunningPod(log)
				task := testTask()
				task.Deadlines.NoProgress = time.Minute
				var state backup.MoverState
				for i := range 12 {
					var err error
					state, err = mover.Poll(t.Context(), task, 1)
					require.NoError(t, err)
					time.Sleep(10 * time.Second)
					log.mu.Lock()
					tc.change(log, i)
					log.mu.Unlock()
				}
				require.Equal(t, tc.ends, state.Phase == backup.MoverEnded)
				if tc.ends {
					require.Equal(t, ReasonNoProgress, state.Result.Reason)
				}
			})
		})
	}
}

func moverWithRunningPod(log LogReader) *Mover {
	job := testJob(testTask(), 1)
	live := fakeClient(job, testPod(job, running))
	return New(Options{Client: live, Reader: live, Image: "image", Logs: log})
}
