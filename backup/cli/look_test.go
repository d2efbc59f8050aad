package cli

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/repo"
)

// script is what is done in a shell, to be compared with a golden file.
type script struct {
	on func(*testing.T) *shell
	do func(*testing.T, *shell)
}

func play(t *testing.T, scripts map[string]script) {
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := script.on(t)
			script.do(t, s)
			s.compare(name)
		})
	}
}

func TestWhatTheCommandsForLookingCopyingAndRepairingPrint(t *testing.T) {
	t.Parallel()
	play(t, map[string]script{
		"dump": {filled, func(_ *testing.T, s *shell) {
			s.do("dump", "latest", "/sub/other", "--path-filter", "/ns/claim")
			s.do("dump", "latest", "/link", "--path-filter", "/ns/claim", "--json")
			s.do("dump", "latest", "/nowhere", "--path-filter", "/ns/claim")
			s.do("dump", "latest")
		}},
		"diff": {filled, func(t *testing.T, s *shell) {
			first := s.snapshots()[0].ID.String()
			s.do("diff", first, "latest", "--path-filter", "/ns/claim")
			require.NoError(t, os.RemoveAll(s.dir+"/data/sub"))
			s.write("new/file", "new")
			require.NoError(t, os.Chmod(s.dir+"/data/file", 0o600))
			for _, name := range []string{"file", "new/file", "new", ""} {
				require.NoError(t, os.Chtimes(filepath.Join(s.dir, "data", name), slot, slot))
			}
			s.now = s.now.Add(time.Hour)
			s.do("backup", "$DIR/data", "--host", "h", "--path", "/ns/claim", "--json")
			s.do("diff", first, "latest", "--path-filter", "/ns/claim")
			s.do("diff", first, "latest", "/sub", "--path-filter", "/ns/claim")
			s.do("diff", first, "latest", "--path-filter", "/ns/claim", "--json")
			s.do("diff", first, "zzzz")
			s.do("diff", first)
		}},
		"stats": {filled, func(_ *testing.T, s *shell) {
			s.do("stats")
			s.do("stats", s.snapshots()[0].ID.String())
			s.do("stats", "--path", "/ns/other", "--json")
			s.do("stats", s.snapshots()[0].ID.String(), "--path", "/ns/other")
		}},
		"repair": {filled, func(t *testing.T, s *shell) {
			s.do("repair")
			s.do("repair", "index")
			for line := range strings.Lines(s.output("list", "blobs", "--json")) {
				if b := jsonOf[blobLine](t, line); b.Type == repo.DataBlob && b.Size == 4 { // "more"
					require.NoError(t, os.Remove(filepath.Join(s.dir, "repo/data", b.Pack[:2], b.Pack)))
				}
			}
			s.do("repair", "index")
			s.do("repair", "index", "--json")
			s.do("repair", "index", "--drop-missing-packs", "--dry-run")
			s.do("repair", "index", "--drop-missing-packs", "--json")
			damage(t, s.dir+"/repo/index")
			s.do("repair", "index")
		}},
		"copy": {filled, func(t *testing.T, s *shell) {
			require.NoError(t, os.Mkdir(s.dir+"/other", 0o755))
			s.do("copy")
			s.env[envFromRepository] = s.env[contract.EnvRepository]
			s.env[contract.EnvRepository] = "file://" + s.dir + "/other"
			s.do("copy")
			s.env[envFromPassword] = password
			s.do("copy")
			s.do("init", "--copy-chunker-params")
			s.do("copy", "--path", "/ns/claim", "--dry-run")
			s.do("copy", "--path", "/ns/claim")
			s.do("copy", "--json")
			s.do("copy", "zzzz")
			s.do("check", "--read-data")
			s.do("copy", "--from-repo", s.env[contract.EnvRepository])
			require.NoError(t, os.Mkdir(s.dir+"/third", 0o755))
			s.do("init", "--repo", "file://$DIR/third")
			s.do("copy", "--repo", "file://$DIR/third", "--tag", "kind=manual")
		}},
		"passwd": {newShell, func(_ *testing.T, s *shell) {
			s.do("init")
			s.do("keys", "passwd")
			s.do("keys", "list")
			s.env[contract.EnvPassword] = "a-second-password"
			s.do("keys", "list")
			delete(s.env, envNewPassword)
			s.do("keys", "passwd")
		}},
		"max-repack": {filled, func(_ *testing.T, s *shell) {
			s.do("prune", "--max-repack", "much")
			s.do("prune", "--max-repack", "-1")
			s.do("prune", "--max-repack", "10G", "--dry-run")
		}},
	})
}

// output runs a command that must succeed, and returns what it printed on standard output.
func (s *shell) output(args ...string) string {
	s.t.Helper()
	var out, log bytes.Buffer
	require.Zero(s.t, s.run(s.t.Context(), &out, &log, args...), "%s%s", log.String(), out.String())
	return out.String()
}

func TestDumpOfAFolderIsATarStream(t *testing.T) {
	s := filled(t)
	in := tar.NewReader(strings.NewReader(s.output("dump", "latest", "/", "--path-filter", "/ns/claim")))
	content := map[string]string{}
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		text, err := io.ReadAll(in)
		require.NoError(t, err)
		content[h.Name] = h.Linkname + string(text)
	}
	require.Equal(t, map[string]string{
		"./": "", "file": strings.Repeat("changed ", 2000), "link": "file", "sub/": "", "sub/other": "more",
	}, content)
}

func TestCatAndListShowEverythingButSecrets(t *testing.T) {
	s := filled(t)
	var seen strings.Builder
	for plural, kind := range map[string]string{
		"packs": "pack", "indexes": "index", "snapshots": "snapshot", "keys": "key", "locks": "lock",
	} {
		ids := strings.Fields(s.output("list", plural))
		require.NotEmpty(t, ids, plural)
		if kind == "lock" { // it is gone by now
			continue
		}
		text := s.output("cat", kind, ids[0][:12])
		seen.WriteString(text)
		shown := jsonOf[map[string]any](t, text)
		switch kind {
		case "pack":
			require.Equal(t, ids[0], shown["id"])
			require.NotEmpty(t, shown["blobs"])
		case "index":
			require.NotEmpty(t, shown["packs"])
		case "snapshot":
			require.Equal(t, "h", shown["hostname"])
			text := s.output("cat", "tree", shown["tree"].(string))
			require.Contains(t, text, `{"nodes":[{"name":"data","type":"dir"`)
			require.Equal(t, text, s.output("cat", "blob", shown["tree"].(string)))
		case "key":
			var fields []string
			for name := range shown {
				fields = append(fields, name)
			}
			require.ElementsMatch(t, []string{"id", "created", "user", "host", "current", "kdf", "N", "r", "p"}, fields)
		}
		line := jsonOf[fileLine](t, strings.SplitN(s.output("list", plural, "--json"), "\n", 2)[0])
		require.Equal(t, ids[0], line.ID.String())
		require.NotZero(t, line.Size)
	}
	config := jsonOf[map[string]any](t, s.output("cat", "config"))
	require.Equal(t, s.open().ID(), config["id"])
	require.EqualValues(t, 2, config["version"])

	blobs := strings.Split(strings.TrimSpace(s.output("list", "blobs")), "\n")
	require.Len(t, blobs, strings.Count(s.output("list", "blobs", "--json"), "\n"))
	var data []string
	for _, line := range blobs {
		if id, found := strings.CutPrefix(line, "data "); found {
			data = append(data, s.output("cat", "blob", id))
		}
	}
	require.ElementsMatch(t, []string{strings.Repeat("content ", 1000), strings.Repeat("changed ", 2000), "more"}, data)
	require.NotContains(t, seen.String(), password)

	for _, args := range [][]string{
		{"cat", "masterkey"}, {"cat", "key"}, {"cat", "config", "x"}, {"cat", "blob", "00", "--json"},
		{"cat", "snapshot", "zz"}, {"cat", "blob", "zz"}, {"cat"}, {"list"}, {"list", "passwords"},
	} {
		var out bytes.Buffer
		require.Equal(t, contract.ExitUsage, s.run(t.Context(), &out, &out, args...), "%v: %s", args, out.String())
	}
}

func TestCatShowsALock(t *testing.T) {
	s := filled(t)
	require.Contains(t, s.output("cat", "lock", ""), `"exclusive": false`) // its own, the only one
}

func TestASizeIsReadWithItsUnit(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0, "7": 7, "3K": 3 << 10, "500M": 500 << 20, "20g": 20 << 30, "1T": 1 << 40,
	} {
		got, err := parseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"0", "-1", "M", "1X", "1.5G", "9999999999T", "1 G"} {
		_, err := parseSize(text)
		require.Error(t, err, text)
	}
}
