package blobstore

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"gocloud.dev/gcerrors"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// first fails the first n calls with err.
func first(n int, err error) func(int) error {
	return func(i int) error {
		if i <= n {
			return err
		}
		return nil
	}
}

func TestNextDelay(t *testing.T) {
	const first, budget = time.Second, time.Minute
	for _, tc := range []struct {
		name    string
		attempt int
		elapsed time.Duration
		spread  float64
		want    time.Duration
		again   bool
	}{
		{"first, middle", 1, 0, 0.5, time.Second, true},
		{"shortest", 1, 0, 0, time.Second / 2, true},
		{"doubles", 3, 0, 0.5, 4 * time.Second, true},
		{"capped", 10, 0, 0.5, 30 * time.Second, true},
		{"no overflow", 1 << 20, 0, 0.5, 30 * time.Second, true},
		{"budget used up", 1, budget, 0.5, time.Second, false},
		{"would end after the budget", 3, budget - 3*time.Second, 0.5, 4 * time.Second, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, again := nextDelay(first, budget, tc.elapsed, tc.attempt, tc.spread)
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.again, again)
		})
	}
}

func TestTransientErrorsAreRetriedAndTold(t *testing.T) {
	f := newFake()
	f.onWrite = first(3, errFlaky)
	var told []int
	s := f.store(t, Options{OnRetry: func(op, key string, attempt int, _ time.Duration, err error) {
		require.Equal(t, "put", op)
		require.Equal(t, "k", key)
		require.ErrorIs(t, err, ErrUnavailable)
		told = append(told, attempt)
	}})
	require.NoError(t, s.PutBytes(t.Context(), "k", []byte("x"), nil))
	require.Equal(t, []int{1, 2, 3}, told)
}

func TestOtherErrorsAreNotRetried(t *testing.T) {
	for _, tc := range []struct {
		err  coded
		want error
	}{
		{errRefused, ErrPermission}, {errThere, ErrExists},
		{coded{gcerrors.InvalidArgument, "bad"}, ErrInvalid}, {coded{gcerrors.Unimplemented, "501"}, ErrUnsupported},
		{errAbsent, ErrNoBucket}, // what else can be missing for a put
	} {
		f := newFake()
		f.onWrite = first(1, tc.err)
		require.ErrorIs(t, f.store(t, Options{}).PutBytes(t.Context(), "k", nil, nil), tc.want)
		require.Equal(t, 1, f.writes)
	}
	f := newFake()
	_, err := f.store(t, Options{}).GetBytes(t.Context(), "k", 1)
	require.ErrorIs(t, err, ErrNotFound)
}

func TestRetryEndsWithTheBudget(t *testing.T) {
	f := newFake()
	f.onWrite = first(1<<30, errFlaky)
	s := f.store(t, Options{RetryBudget: 20 * time.Millisecond, RetryDelay: time.Millisecond})
	err := s.PutBytes(t.Context(), "k", nil, nil)
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "gave up after")
	require.Greater(t, f.writes, 1)
}

func TestNegativeBudgetTriesOnce(t *testing.T) {
	f := newFake()
	f.onWrite = first(1, errFlaky)
	require.ErrorIs(t, f.store(t, Options{RetryBudget: -1}).PutBytes(t.Context(), "k", nil, nil), ErrUnavailable)
	require.Equal(t, 1, f.writes)
}

func TestContextWinsOverBudget(t *testing.T) {
	f := newFake()
	f.onWrite = first(1<<30, errFlaky)
	s := f.store(t, Options{RetryDelay: time.Hour, RetryBudget: 100 * time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := s.PutBytes(ctx, "k", nil, nil)
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "connection reset")
}

func TestStalledPutIsCancelledAndRetried(t *testing.T) {
	f := newFake()
	f.onWrite = first(2, errHang)
	s := f.store(t, Options{StallTimeout: 20 * time.Millisecond})
	require.NoError(t, s.PutBytes(t.Context(), "k", []byte("x"), nil))
	require.Equal(t, 3, f.writes)
}

func TestStalledReadIsCancelledAndResumed(t *testing.T) {
	f := newFake()
	f.objects["k"] = []byte("0123456789")
	f.onRead = func(n int, r io.Reader) (io.Reader, error) {
		if n <= 2 {
			return io.MultiReader(io.LimitReader(r, 3), failingReader{errHang}), nil
		}
		return r, nil
	}
	s := f.store(t, Options{StallTimeout: 20 * time.Millisecond})
	got, err := s.GetBytes(t.Context(), "k", 10)
	require.NoError(t, err)
	require.Equal(t, "0123456789", string(got))
	require.Equal(t, 3, f.reads)
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

func TestSlowCallerIsNotAStalledStore(t *testing.T) {
	f := newFake()
	f.objects["k"] = []byte("0123456789")
	s := f.store(t, Options{StallTimeout: 10 * time.Millisecond, RetryBudget: -1})
	r, err := s.Get(t.Context(), "k")
	require.NoError(t, err)
	buf := make([]byte, 5)
	for range 2 {
		_, err = io.ReadFull(r, buf)
		require.NoError(t, err)
		wait, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		<-wait.Done()
		cancel()
	}
	require.NoError(t, r.Close())
	require.Equal(t, 1, f.reads)
	slow := io.MultiReader(strings.NewReader("a"), slowReader{50 * time.Millisecond}, strings.NewReader("b"))
	require.NoError(t, s.Put(t.Context(), "slow", slow, nil))
}

type slowReader struct{ d time.Duration }

func (r slowReader) Read([]byte) (int, error) {
	<-time.After(r.d)
	return 0, io.EOF
}

func TestBrokenBodyIsResumedWhereItWas(t *testing.T) {
	f := newFake()
	f.objects["k"] = []byte("0123456789")
	f.onRead = func(n int, r io.Reader) (io.Reader, error) {
		switch n % 3 {
		case 0:
			return nil, errFlaky
		case 1:
			return io.LimitReader(r, 1), nil // ends early, without an error
		}
		return io.MultiReader(io.LimitReader(r, 1), failingReader{errFlaky}), nil
	}
	s := f.store(t, Options{})
	got, err := s.GetRange(t.Context(), "k", 2, 7)
	require.NoError(t, err)
	require.Equal(t, "2345678", string(got))
}

func TestObjectThatChangesWhileReadIsCorrupt(t *testing.T) {
	f := newFake()
	f.objects["k"] = []byte("0123456789")
	f.onRead = func(_ int, r io.Reader) (io.Reader, error) {
		f.objects["k"] = []byte("01234567890")
		return io.LimitReader(r, 2), nil
	}
	_, err := f.store(t, Options{}).GetRange(t.Context(), "k", 0, 10)
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestSeekableStreamIsSentAgainOthersAreNot(t *testing.T) {
	f := newFake()
	f.onWrite = first(1, errFlaky)
	s := f.store(t, Options{})
	r := strings.NewReader("skipped content")
	_, _ = r.Seek(8, io.SeekStart)
	require.NoError(t, s.Put(t.Context(), "k", r, nil))
	require.Equal(t, "content", string(f.objects["k"]))
	f.onWrite = func(int) error { return errFlaky }
	before := f.writes
	require.ErrorIs(t, s.Put(t.Context(), "l", io.MultiReader(strings.NewReader("x")), nil), ErrUnavailable)
	require.Equal(t, before+1, f.writes)
}

func TestLostAnswerOfAConditionalPutIsStillAWin(t *testing.T) {
	f := newFake()
	f.onAck = first(1, errFlaky)
	s := f.store(t, Options{})
	require.NoError(t, s.PutBytes(t.Context(), "k", []byte("mine"), &PutOptions{OnlyIfAbsent: true}))
	f.onWrite = func(n int) error {
		if n == 3 { // somebody else comes first, and our answer is lost
			f.objects["l"] = []byte("theirs")
			return errFlaky
		}
		return nil
	}
	require.ErrorIs(t, s.PutBytes(t.Context(), "l", []byte("mine"), &PutOptions{OnlyIfAbsent: true}), ErrExists)
	require.Equal(t, "theirs", string(f.objects["l"]))
}

func TestLostAnswerOfADeletionIsStillADeletion(t *testing.T) {
	f := newFake()
	f.objects["k"] = nil
	f.onAck = first(1, errFlaky)
	require.NoError(t, f.store(t, Options{}).Delete(t.Context(), "k"))
}

func TestMissingBucketNeverLooksLikeAMissingObject(t *testing.T) {
	f := newFake()
	f.onList = func(int) error { return errAbsent }
	s := f.store(t, Options{})
	_, err := s.Stat(t.Context(), "k")
	require.ErrorIs(t, err, ErrNoBucket)
	require.NotErrorIs(t, err, ErrNotFound)
	_, err = s.GetBytes(t.Context(), "k", 1)
	require.ErrorIs(t, err, ErrNoBucket)
	require.ErrorIs(t, s.Delete(t.Context(), "k"), ErrNoBucket)

	f.onList = func(int) error { return errRefused }
	_, err = s.Stat(t.Context(), "k")
	require.ErrorIs(t, err, ErrPermission, "what may not be looked at is not known to be missing")

	f.onList = nil
	_, err = s.Stat(t.Context(), "k")
	require.ErrorIs(t, err, ErrNotFound)
	lists := f.lists
	_, err = s.Stat(t.Context(), "k")
	require.ErrorIs(t, err, ErrNotFound)
	require.Equal(t, lists, f.lists, "it looks once")
}

func TestIgnoredConditionIsReplacedByLooking(t *testing.T) {
	f := newFake()
	f.ignore = true
	s := f.store(t, Options{})
	r, err := s.Probe(t.Context())
	require.NoError(t, err)
	require.False(t, r.ConditionalPut.OK)
	require.ErrorContains(t, errors.New(r.ConditionalPut.Detail), "ignores")
	absent := &PutOptions{OnlyIfAbsent: true}
	require.NoError(t, s.Sub("a").PutBytes(t.Context(), "k", []byte("1"), absent))
	require.ErrorIs(t, s.Sub("a").PutBytes(t.Context(), "k", []byte("2"), absent), ErrExists)
	require.ErrorIs(t, s.Put(t.Context(), "a/k", strings.NewReader("2"), absent), ErrExists)
	require.Equal(t, "1", string(f.objects["a/k"]))
}

func TestRefusedConditionIsReplacedByLooking(t *testing.T) {
	f := newFake()
	f.onWrite = first(1, coded{gcerrors.Unimplemented, "501"})
	s := f.store(t, Options{})
	r, err := s.Probe(t.Context())
	require.NoError(t, err)
	require.False(t, r.ConditionalPut.OK)
	require.ErrorContains(t, errors.New(r.ConditionalPut.Detail), "refuses")
	require.ErrorIs(t, func() error {
		_ = s.PutBytes(t.Context(), "k", []byte("1"), &PutOptions{OnlyIfAbsent: true})
		return s.PutBytes(t.Context(), "k", []byte("2"), &PutOptions{OnlyIfAbsent: true})
	}(), ErrExists)
}

func TestProbeSaysWhatFails(t *testing.T) {
	f := newFake()
	f.onWrite = func(int) error { return errRefused }
	r, err := f.store(t, Options{}).Probe(t.Context())
	require.ErrorIs(t, err, ErrPermission)
	require.False(t, r.Write.OK)
	require.True(t, r.List.OK)

	f = newFake()
	f.onAck = func(n int) error {
		if n > 1 { // the first is the put
			return errRefused
		}
		return nil
	}
	r, err = f.store(t, Options{}).Probe(t.Context())
	require.NoError(t, err, "a key that may not delete is fine for backups")
	require.False(t, r.Delete.OK)
	require.Contains(t, r.Delete.Detail, "cannot be deleted")
}

func TestClockSkewIsJudged(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	skew, c := judgeClock(now.Add(-6*time.Minute), now)
	require.Equal(t, -6*time.Minute, skew)
	require.False(t, c.OK)
	skew, c = judgeClock(now.Add(3*time.Second), now)
	require.Equal(t, 3*time.Second, skew)
	require.True(t, c.OK)
}

func TestListOutOfOrderIsAnError(t *testing.T) {
	f := newFake()
	s := f.store(t, Options{})
	for _, keys := range [][]string{{"b", "a"}, {"a", "a"}} {
		s.driver.List = func(context.Context, string) iterSeq {
			return func(yield func(Object, error) bool) {
				for _, k := range keys {
					if !yield(Object{Key: k}, nil) {
						return
					}
				}
			}
		}
		var last error
		for _, err := range s.List(t.Context(), "") {
			last = err
		}
		require.ErrorIs(t, last, ErrCorrupt)
	}
}
