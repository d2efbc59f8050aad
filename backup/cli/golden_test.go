package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/repo"
)

var update = flag.Bool("update", false, "write the golden files anew")

// shell runs commands and writes down what they print.
type shell struct {
	*rig
	dir  string
	text strings.Builder
}

// newShell has a repository with two series: of the first there are two snapshots, and an empty one that is newer.
func newShell(t *testing.T) *shell {
	s := &shell{rig: newRig(t), dir: t.TempDir()}
	s.now = slot
	s.env = map[string]string{contract.EnvRepository: "file://" + s.dir + "/repo", contract.EnvPassword: password, envNewPassword: "a-second-password", contract.EnvSource: s.dir + "/data"}
	require.NoError(t, os.Mkdir(s.dir+"/repo", 0o755))
	require.NoError(t, os.Mkdir(s.dir+"/empty", 0o755))
	s.write("file", strings.Repeat("content ", 1000))
	s.write("sub/other", "more")
	require.NoError(t, os.Symlink("file", s.dir+"/data/link"))
	s.settle()
	return s
}

// settle gives everything the same time.
func (s *shell) settle() {
	for _, name := range []string{"file", "sub/other", "sub", ""} {
		require.NoError(s.t, os.Chtimes(filepath.Join(s.dir, "data", name), slot, slot))
	}
}

// filled has snapshots.
func filled(t *testing.T) *shell {
	s := newShell(t)
	s.do("init")
	s.do("backup", "$DIR/data", "--host", "h", "--path", "/ns/claim", "--tag", "kind=manual")
	s.now = s.now.Add(time.Hour)
	s.write("file", strings.Repeat("changed ", 2000))
	s.settle()
	s.do("backup", "$DIR/data", "--host", "h", "--path", "/ns/claim")
	s.now = s.now.Add(time.Hour)
	s.do("backup", "$DIR/empty", "--host", "h", "--path", "/ns/claim")
	s.now = s.now.Add(time.Hour)
	s.do("backup", "$DIR/data", "--host", "h", "--path", "/ns/other")
	s.text.Reset()
	return s
}

func (s *shell) do(args ...string) {
	s.t.Helper()
	fmt.Fprintf(&s.text, "$ pvcbackup %s\n", strings.Join(args, " "))
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "$DIR", s.dir)
	}
	var out bytes.Buffer
	code := s.run(s.t.Context(), &out, &out, args...)
	for line := range strings.Lines(out.String()) {
		if _, progress := contract.ParseProgress(line); !progress {
			s.text.WriteString(line)
		}
	}
	if code != 0 {
		fmt.Fprintf(&s.text, "[exit code %d]\n", code)
	}
	s.text.WriteString("\n")
}

var volatile = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "<id>"},
	{regexp.MustCompile(`data/[0-9a-f]{2}/`), "data/<..>/"},
	{regexp.MustCompile(`\b[0-9a-f]{8}\b`), "<short>"},
	{regexp.MustCompile(`\b\d+ bytes\b`), "<n> bytes"},
	{regexp.MustCompile(`\b\d+(\.\d)? ([KMG]i)?B\b`), "<size>"},
	{regexp.MustCompile(`"(added|freed|used|unused|seconds|bytes|uid|gid|blobBytes|storedBytes)": ?[0-9.]+`), `"$1": <n>`},
	{regexp.MustCompile(`in \d+\.\d s\b`), "in <n> s"},
	{regexp.MustCompile(`(?m)^([dL-][rwx-]{9}) +\d+ +\d+ `), "$1 <uid> <gid> "},
	{regexp.MustCompile(`\b(2026-1[12]|202[789]|20[3-9]\d)[-0-9]*[T ][0-9:.]+(Z|\+00:00)?`), "<time>"},
	{regexp.MustCompile(`(\bprocess|"pid":) \d+`), "$1 <n>"},
	{regexp.MustCompile(`\brefreshed \S+ ago`), "refreshed <n> ago"},
	{regexp.MustCompile(`  +`), "  "},
}

// compare compares what was written down with the golden file.
func (s *shell) compare(name string) {
	s.t.Helper()
	text := strings.ReplaceAll(s.text.String(), s.dir, "$DIR")
	require.NotContains(s.t, text, password)
	require.NotContains(s.t, text, "a-second-password")
	host, err := os.Hostname()
	require.NoError(s.t, err)
	text = regexp.MustCompile(`\b`+regexp.QuoteMeta(host)+`\b`).ReplaceAllString(text, "<host>")
	for _, v := range volatile {
		text = v.what.ReplaceAllString(text, v.with)
	}
	file := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(s.t, os.MkdirAll("testdata", 0o755))
		require.NoError(s.t, os.WriteFile(file, []byte(text), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(s.t, err)
	if diff := cmp.Diff(string(want), text); diff != "" {
		s.t.Errorf("%s (run the test with -update): -want +got:\n%s", file, diff)
	}
}

func TestWhatTheCommandsPrint(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]struct {
		on func(*testing.T) *shell
		do func(*testing.T, *shell)
	}{
		"init": {newShell, func(_ *testing.T, s *shell) {
			s.do("init")
			s.do("init")
			s.do("init", "--json")
		}},
		"version": {newShell, func(_ *testing.T, s *shell) {
			s.do("version")
			s.do("version", "--json")
		}},
		"backup": {newShell, func(_ *testing.T, s *shell) {
			s.do("init")
			s.do("backup", "$DIR/data", "--host", "h", "--path", "/ns/claim", "--tag", "kind=manual")
			s.do("backup", "$DIR/data", "--host", "h", "--path", "/ns/claim", "--exclude", "sub", "--one-file-system", "--json")
			s.do("backup", "$DIR/empty", "--host", "h", "--path", "/ns/empty", "--chunker", "rabin", "--compression", "better")
			s.do("backup")
			s.do("backup", "$DIR/data", "--compression", "best")
			s.do("backup", "$DIR/missing")
		}},
		"snapshots": {filled, func(t *testing.T, s *shell) {
			s.do("snapshots")
			s.do("snapshots", "--path", "/ns/claim", "--tag", "kind=manual", "--json")
			s.do("snapshots", "--host", "another")
			damage(t, s.dir+"/repo/snapshots")
			s.do("snapshots", "--path", "/ns/none")
		}},
		"restore": {filled, func(_ *testing.T, s *shell) {
			s.do("restore", "latest", "--target", "$DIR/t1")
			s.do("restore", "latest", "--target", "$DIR/t1", "--path-filter", "/ns/claim", "--dry-run")
			s.do("restore", "latest", "--target", "$DIR/t1", "--path-filter", "/ns/claim")
			s.do("restore", "latest", "--target", "$DIR/t1", "--path-filter", "/ns/claim")
			s.do("restore", "latest", "--target", "$DIR/t1", "--path-filter", "/ns/claim", "--overwrite", "if-changed", "--json")
			s.do("restore", "latest", "--target", "$DIR/t2", "--path-filter", "/ns/claim", "--offset", "1", "--path", "sub", "--no-owners")
			s.do("restore", "latest", "--target", "$DIR/t3", "--as-of", "2026-01-02T03:30:00Z", "--no-lock")
			s.do("restore", "latest", "--target", "$DIR/t4", "--path-filter", "/ns/claim", "--offset", "2")
			s.do("restore", "latest", "--target", "$DIR/t4", "--path-filter", "/ns/claim", "--path", "nowhere", "--json")
			s.do("restore", "zzzz", "--target", "$DIR/t4")
			s.do("restore", "zzzz", "--target", "$DIR/t4", "--host", "h")
			s.do("restore", "latest", "--target", "$DIR/t4", "--as-of", "yesterday")
			s.do("restore", "latest")
		}},
		"ls": {filled, func(_ *testing.T, s *shell) {
			s.do("ls", "latest", "--path-filter", "/ns/claim")
			s.do("ls", "latest", "/sub", "--path-filter", "/ns/claim", "--json")
			s.do("ls", "latest", "file", "--path-filter", "/ns/claim")
			s.do("ls", "latest", "nowhere", "--path-filter", "/ns/claim")
		}},
		"check": {filled, func(t *testing.T, s *shell) {
			s.do("check")
			s.do("check", "--read-data", "--json")
			s.do("check", "--read-fraction", "2")
			packs, err := filepath.Glob(s.dir + "/repo/data/*/*")
			require.NoError(t, err)
			for _, pack := range packs {
				require.NoError(t, os.Remove(pack))
			}
			s.do("check")
		}},
		"forget": {filled, func(_ *testing.T, s *shell) {
			s.do("forget")
			s.do("forget", "--keep-within", "often")
			s.do("forget", "--keep-last", "1", "--dry-run")
			s.do("forget", "--keep-last", "1", "--path", "/ns/claim", "--prune")
			s.do("forget", "--keep-daily", "7", "--json")
		}},
		"prune": {filled, func(_ *testing.T, s *shell) {
			s.do("forget", "--keep-last", "1", "--json")
			s.do("prune", "--max-unused", "0", "--dry-run")
			s.do("prune", "--max-unused", "0")
			s.do("prune", "--max-unused", "0", "--json")
			s.do("prune", "--max-unused", "5")
			s.do("check", "--read-data")
		}},
		"keys": {newShell, func(_ *testing.T, s *shell) {
			s.do("init")
			s.do("keys", "list")
			s.do("keys", "add")
			s.do("keys", "list", "--json")
			s.do("keys", "remove", "nothing")
			s.env[contract.EnvPassword] = "a-second-password"
			current := s.open2().KeyID().String()
			s.do("keys", "remove", current)
			delete(s.env, envNewPassword)
			s.do("keys", "add")
		}},
		"unlock": {newShell, func(t *testing.T, s *shell) {
			s.do("init")
			s.do("unlock")
			ctx, kill := context.WithCancel(t.Context())
			_, err := s.open2().Lock(ctx, repo.LockOptions{Host: "a-dead-host"})
			require.NoError(t, err)
			kill()
			s.now = time.Now()
			s.do("prune", "--lock-wait", "0s")
			s.do("unlock")
			s.do("unlock", "--all", "--json")
			s.do("unlock")
		}},
		"unlock-stale": {newShell, func(t *testing.T, s *shell) {
			s.do("init")
			ctx, kill := context.WithCancel(t.Context())
			_, err := s.open2().Lock(ctx, repo.LockOptions{Host: "a-dead-host"})
			require.NoError(t, err)
			kill()
			s.now = time.Now().Add(31 * time.Minute)
			s.do("unlock")
		}},
		"repos": {filled, func(t *testing.T, s *shell) {
			require.NoError(t, os.MkdirAll(s.dir+"/deep/keys", 0o755))
			require.NoError(t, os.WriteFile(s.dir+"/deep/keys/"+strings.Repeat("ab", 32), []byte("x"), 0o644))
			s.do("repos", "file://$DIR")
			s.do("repos", "file://$DIR", "--json")
			s.do("repos")
			s.do("repos", "file://$DIR/empty")
		}},
		"mistakes": {filled, func(_ *testing.T, s *shell) {
			s.do()
			s.do("nonsense")
			s.do("snapshots", "--nonsense")
			s.do("snapshots", "extra")
			s.env[contract.EnvPassword] = "wrong"
			s.do("snapshots")
			s.do("snapshots", "--json")
			s.do("snapshots", "--repo", "file://$DIR/empty")
			s.do("snapshots", "--repo", "ftp://user:secret@host/")
			s.do("snapshots", "--repo", "")
			s.env[contract.EnvPassword] = ""
			s.do("snapshots")
			s.do("snapshots", "--password-file", "$DIR/missing")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := script.on(t)
			script.do(t, s)
			s.compare(name)
		})
	}
}

// open2 opens the repository with the password that the environment has now.
func (s *shell) open2() *repo.Repository {
	s.t.Helper()
	tool := s.tool(s.options(&s.log, &s.log))
	tool.repo = s.env[contract.EnvRepository]
	opened, err := tool.open(s.t.Context())
	require.NoError(s.t, err)
	return opened.repository
}

// damage changes a bit in the first file of a folder.
func damage(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*")
	require.NoError(t, err)
	data, err := os.ReadFile(files[0])
	require.NoError(t, err)
	data[len(data)/2] ^= 1
	require.NoError(t, os.Chmod(files[0], 0o644))
	require.NoError(t, os.WriteFile(files[0], data, 0o644))
}

func TestTablesAreAlignedAndShowNothingThatMovesTheCursor(t *testing.T) {
	var out bytes.Buffer
	table(&out, []string{"A", "LONG"}, [][]string{{"much longer", "x"}, {"\x1b[2J", ""}})
	want := "A            LONG\nmuch longer  x\n?[2J\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestProgressIsOneChangingLineOnATerminal(t *testing.T) {
	var out bytes.Buffer
	now := slot
	tool := newTool(Options{Stderr: &out, Terminal: true, Now: func() time.Time { return now }})
	m := tool.meter("reading")
	m.show(contract.Progress{Bytes: 1 << 20, TotalBytes: 4 << 20, Files: 1, TotalFiles: 3})
	m.show(contract.Progress{Bytes: 2 << 20, TotalBytes: 4 << 20, Files: 2, TotalFiles: 3}) // too soon
	now = now.Add(2 * time.Second)
	m.show(contract.Progress{Bytes: 2 << 20, TotalBytes: 4 << 20, Files: 2, TotalFiles: 3})
	m.stop()
	want := "\r\x1b[Kreading: 1 of 3, 1.0 MiB of 4.0 MiB (25 %)" +
		"\r\x1b[Kreading: 2 of 3, 2.0 MiB of 4.0 MiB (50 %), 1.0 MiB/s, 2s left\r\x1b[K"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
