package repo_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/blobstore"
)

func denied(ops ...string) func(op, key string) error {
	return func(op, _ string) error {
		if slices.Contains(ops, op) {
			return blobstore.ErrPermission
		}
		return nil
	}
}

func TestProbeGivesFourAnswers(t *testing.T) {
	key := "keys/" + strings.Repeat("a", 64)
	for name, c := range map[string]struct {
		prepare func(*repotest.Memory)
		want    repo.State
	}{
		"nothing":                 {func(*repotest.Memory) {}, repo.StateAbsent},
		"config":                  {func(s *repotest.Memory) { s.Set("config", nil) }, repo.StateRepository},
		"only a key":              {func(s *repotest.Memory) { s.Set(key, nil) }, repo.StateHalfInitialised},
		"only a snapshot":         {func(s *repotest.Memory) { s.Set("snapshots/x", nil) }, repo.StateHalfInitialised},
		"only a marker":           {func(s *repotest.Memory) { s.Set("owner", nil) }, repo.StateHalfInitialised},
		"stat denied":             {func(s *repotest.Memory) { s.Before = denied("stat") }, repo.StateUnknown},
		"list denied":             {func(s *repotest.Memory) { s.Before = denied("list") }, repo.StateUnknown},
		"all denied, config":      {func(s *repotest.Memory) { s.Set("config", nil); s.Before = denied("stat", "list") }, repo.StateUnknown},
		"only snapshots unlisted": {func(s *repotest.Memory) { s.Before = failOn("list", "snapshots/") }, repo.StateUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			s := repotest.NewMemory()
			c.prepare(s)
			got, err := repo.Probe(t.Context(), s)
			require.Equal(t, c.want, got, "%v", err)
			require.Equal(t, c.want == repo.StateUnknown, err != nil)
		})
	}
}

func empty(s *repotest.Memory) {
	for _, key := range s.Keys("") {
		s.Remove(key)
	}
}

var errStore = errors.New("the store is down")

// failOn fails operations whose key begins with prefix.
func failOn(op, prefix string) func(op, key string) error {
	return func(o, key string) error {
		if o == op && strings.HasPrefix(key, prefix) {
			return errStore
		}
		return nil
	}
}

func TestInitNeverActsOnDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*repotest.Memory)
		want    error
	}{
		"config":          {func(s *repotest.Memory) { s.Set("config", nil) }, repo.ErrAlreadyInitialised},
		"key":             {func(s *repotest.Memory) { s.Set("keys/x", nil) }, repo.ErrHalfInitialised},
		"snapshot":        {func(s *repotest.Memory) { s.Set("snapshots/x", nil) }, repo.ErrHalfInitialised},
		"stat denied":     {func(s *repotest.Memory) { s.Before = denied("stat") }, blobstore.ErrPermission},
		"list denied":     {func(s *repotest.Memory) { s.Before = denied("list") }, blobstore.ErrPermission},
		"get denied":      {func(s *repotest.Memory) { s.Before = denied("get") }, blobstore.ErrPermission},
		"list fails":      {func(s *repotest.Memory) { s.Before = failOn("list", "keys/") }, errStore},
		"foreign marker":  {func(s *repotest.Memory) { s.Set("owner", []byte(`{"owner":"else"}`)) }, repo.ErrForeignOwner},
		"own marker only": {func(s *repotest.Memory) { s.Set("owner", []byte(`{"owner":"me"}`)) }, repo.ErrHalfInitialised},
		"bad marker":      {func(s *repotest.Memory) { s.Set("owner", []byte(`x`)) }, repo.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			s := repotest.NewMemory()
			c.prepare(s)
			before := s.Keys("")
			synctest.Test(t, func(t *testing.T) {
				_, err := repo.Init(t.Context(), s, password, &repo.InitOptions{KeyOptions: cheap, Owner: "me"})
				require.ErrorIs(t, err, c.want)
			})
			require.Equal(t, before, s.Keys(""))
		})
	}
}

func TestInitWritesTheMarkerAndEveryOtherOwnerIsRefused(t *testing.T) {
	s := repotest.NewMemory()
	r, err := repo.Init(t.Context(), s, password, &repo.InitOptions{KeyOptions: cheap, Owner: "cluster/ns/claim"})
	require.NoError(t, err)
	require.JSONEq(t, `{"repository_id":"`+r.ID()+`","owner":"cluster/ns/claim"}`, string(s.Bytes("owner")))
	got, err := r.Owner(t.Context())
	require.NoError(t, err)
	require.Equal(t, "cluster/ns/claim", got)
	require.NoError(t, r.EnsureOwner(t.Context(), "cluster/ns/claim"))
	require.ErrorIs(t, r.EnsureOwner(t.Context(), "other"), repo.ErrForeignOwner)

	s.Set("owner", []byte(`{"repository_id":"another","owner":"cluster/ns/claim"}`))
	require.ErrorIs(t, r.EnsureOwner(t.Context(), "cluster/ns/claim"), repo.ErrDamaged)
}

func TestInitWithoutOwnerWritesNoMarker(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	require.Empty(t, s.Keys("owner"))
	_, err := r.Owner(t.Context())
	require.ErrorIs(t, err, repo.ErrNotFound)
	require.NoError(t, r.EnsureOwner(t.Context(), "me")) // completes an Init that was interrupted
	require.NotEmpty(t, s.Keys("owner"))
}

// barrier makes the n first operations of a kind on a key wait for each other.
func barrier(n int, op, key string) func(op, key string) error {
	var mu sync.Mutex
	all := make(chan struct{})
	waiting := 0
	return func(o, k string) error {
		if o != op || k != key {
			return nil
		}
		mu.Lock()
		waiting++
		if waiting == n {
			close(all)
		}
		mu.Unlock()
		<-all
		return nil
	}
}

func TestOfManyInitsAtOnceOneWinsAndTheOthersOpenItsRepository(t *testing.T) {
	s := repotest.NewMemory()
	const n = 4
	s.Before = barrier(n, "list", "snapshots/") // all have seen that nothing is there
	repos, errs := make([]*repo.Repository, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			repos[i], errs[i] = repo.Init(t.Context(), s, password, &repo.InitOptions{KeyOptions: cheap, Owner: "me"})
		})
	}
	wg.Wait()
	for i := range n {
		require.NoError(t, errs[i])
		require.Equal(t, repos[0].ID(), repos[i].ID())
	}
	require.Len(t, s.Keys("keys/"), 1, "keys of the losers do not fit the winner's config")
}

func TestALostInitWithAnotherPasswordIsATypedError(t *testing.T) {
	s := repotest.NewMemory()
	s.Before = barrier(2, "list", "snapshots/")
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, pw := range []string{"one", "two"} {
		wg.Go(func() { _, errs[i] = repo.Init(t.Context(), s, pw, &repo.InitOptions{KeyOptions: cheap}) })
	}
	wg.Wait()
	if errs[0] != nil {
		errs[0], errs[1] = errs[1], errs[0]
	}
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], repo.ErrAlreadyInitialised)
	require.ErrorIs(t, errs[1], repo.ErrWrongPassword)
}

func TestALosersKeyThatStaysDoesNotStopOpening(t *testing.T) {
	s := repotest.NewMemory()
	other := repotest.NewMemory()
	initRepo(t, s)
	initRepo(t, other) // the same password over another master key
	for _, key := range other.Keys("keys/") {
		s.Set(key, other.Bytes(key))
	}
	openRepo(t, s)
}

func TestInterruptedInitIsHalfInitialised(t *testing.T) {
	s := repotest.NewMemory()
	s.Before = failOn("put", "config")
	_, err := repo.Init(t.Context(), s, password, &repo.InitOptions{KeyOptions: cheap})
	require.ErrorIs(t, err, errStore)
	s.Before = nil
	_, err = repo.Open(t.Context(), s, password, nil)
	require.ErrorIs(t, err, repo.ErrHalfInitialised)
	synctest.Test(t, func(t *testing.T) {
		_, err = repo.Init(t.Context(), s, password, &repo.InitOptions{KeyOptions: cheap})
		require.ErrorIs(t, err, repo.ErrHalfInitialised)
	})
}

func TestInitWaitsForAnotherThatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := repotest.NewMemory()
		s.Before = func(op, key string) error {
			if op == "put" && key == "config" {
				time.Sleep(3 * time.Second)
			}
			return nil
		}
		first := make(chan *repo.Repository)
		go func() { first <- initRepo(t, s) }()
		synctest.Wait() // a key is there, and no config
		second, err := repo.Init(t.Context(), s, password, &repo.InitOptions{KeyOptions: cheap})
		require.NoError(t, err)
		require.Equal(t, (<-first).ID(), second.ID())
		require.Len(t, s.Keys("keys/"), 1)
	})
}

func TestInitSetsUpAVersionTwoRepository(t *testing.T) {
	r := initRepo(t, repotest.NewMemory())
	require.Len(t, r.ID(), 64)
	require.NotZero(t, r.Polynomial())
	require.Equal(t, 2, r.Version())
}

func TestOpenTellsFailuresApart(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*repotest.Memory)
		want  error
	}{
		"absent":          {func(s *repotest.Memory) { empty(s) }, repo.ErrAbsent},
		"no config":       {func(s *repotest.Memory) { s.Remove("config") }, repo.ErrHalfInitialised},
		"config denied":   {func(s *repotest.Memory) { s.Before = denied("get") }, blobstore.ErrPermission},
		"keys unlisted":   {func(s *repotest.Memory) { s.Before = denied("list") }, blobstore.ErrPermission},
		"short config":    {func(s *repotest.Memory) { s.Set("config", []byte("short")) }, repo.ErrDamaged},
		"empty config":    {func(s *repotest.Memory) { s.Set("config", nil) }, repo.ErrDamaged},
		"short key":       {func(s *repotest.Memory) { s.Set(s.Keys("keys/")[0], []byte("{}")) }, repo.ErrDamaged},
		"no key":          {func(s *repotest.Memory) { s.Remove(s.Keys("keys/")[0]) }, repo.ErrWrongPassword},
		"absent, denied":  {func(s *repotest.Memory) { empty(s); s.Before = denied("list") }, blobstore.ErrPermission},
		"denied Stat too": {func(s *repotest.Memory) { s.Remove("config"); s.Before = denied("stat") }, blobstore.ErrPermission},
	} {
		t.Run(name, func(t *testing.T) {
			s := repotest.NewMemory()
			initRepo(t, s)
			c.spoil(s)
			_, err := repo.Open(t.Context(), s, password, nil)
			require.ErrorIs(t, err, c.want)
			require.Equal(t, errors.Is(c.want, repo.ErrAbsent), errors.Is(err, repo.ErrAbsent))
		})
	}
}

func TestSeveralPasswordsOpenUntilTheirKeysAreRemoved(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	added, err := r.AddKey(t.Context(), "second", repo.KeyOptions{Username: "u", Hostname: "h", Scrypt: repotest.Cheap})
	require.NoError(t, err)
	second, err := repo.Open(t.Context(), s, "second", &repo.OpenOptions{KeyHint: added})
	require.NoError(t, err)
	require.Equal(t, r.ID(), second.ID())
	require.Equal(t, added, second.KeyID())
	keys, err := second.ListKeys(t.Context())
	require.NoError(t, err)
	require.Len(t, keys, 2)
	for _, k := range keys {
		require.Equal(t, k.ID == added, k.Current)
		if k.Current {
			require.Equal(t, "u@h", k.Username+"@"+k.Hostname)
		}
	}
	require.Error(t, second.RemoveKey(t.Context(), added), "the key in use")
	require.NoError(t, second.RemoveKey(t.Context(), r.KeyID()))
	_, err = repo.Open(t.Context(), s, password, nil)
	require.ErrorIs(t, err, repo.ErrWrongPassword)
	_, err = repo.Open(t.Context(), s, "second", &repo.OpenOptions{KeyHint: r.KeyID()})
	require.NoError(t, err, "a hint to a removed key is only a hint")
}

func TestAKeyHintSavesTheListingOrder(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	for range 3 {
		_, err := r.AddKey(t.Context(), "other", cheap)
		require.NoError(t, err)
	}
	var read []string
	s.Before = func(op, key string) error {
		if op == "get" && strings.HasPrefix(key, "keys/") {
			read = append(read, key)
		}
		return nil
	}
	_, err := repo.Open(t.Context(), s, password, &repo.OpenOptions{KeyHint: r.KeyID()})
	require.NoError(t, err)
	require.Equal(t, []string{"keys/" + r.KeyID().String()}, read)
}

func TestErrorsContainNoPassword(t *testing.T) {
	s := repotest.NewMemory()
	initRepo(t, s)
	_, err := repo.Open(t.Context(), s, "hunter2", nil)
	require.ErrorIs(t, err, repo.ErrWrongPassword)
	require.NotContains(t, err.Error(), "hunter2")
}

func TestAnEmptyPasswordIsRefused(t *testing.T) {
	s := repotest.NewMemory()
	_, err := repo.Init(t.Context(), s, "", &repo.InitOptions{KeyOptions: cheap})
	require.Error(t, err)
	require.Empty(t, s.Keys(""))
}
