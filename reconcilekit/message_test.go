package reconcilekit_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/reconcilekit"
)

func TestStableTextLeavesOutWhatDiffersEachTime(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"plain text": {`snapshot "data-1" is not ready after 10m`, `snapshot "data-1" is not ready after 10m`},
		"sizes stay": {"needs 10737418240 bytes, 5 of 12 files at 1.5 MB/s", "needs 10737418240 bytes, 5 of 12 files at 1.5 MB/s"},
		"uid":        {"uid mismatch: 8C2f0a1e-0000-4000-8000-123456789abc is not ours", "uid mismatch: <uid> is not ours"},
		"dial": {"dial tcp 10.96.0.1:443: connect: connection refused",
			"dial tcp <address>: connect: connection refused"},
		"read": {"read tcp 10.1.2.3:34567->10.96.0.1:443: i/o timeout", "read tcp <address>-><address>: i/o timeout"},
		"IPv6": {"dial tcp [fd00::1%eth0]:443: refused; fe80:0:0:0:0:0:0:1 and fd00::12:3 too",
			"dial tcp <address>: refused; <address> and <address> too"},
		"host and port":    {"lookup store.example.com on 10.0.0.10:53: dial localhost:34567", "lookup store.example.com on <address>: dial localhost:<port>"},
		"resource version": {"resourceVersion: 12345 is old, resource version 7 too", "resourceVersion: <version> is old, resource version <version> too"},
		"times": {"at 2026-03-01T12:00:00.123Z, 2026-03-01 12:00:00.5 +0000 UTC m=+0.12 and Sun, 01 Mar 2026 12:00:00 GMT",
			"at <time>, <time> and <time>"},
		"duration":   {"took 1.234567ms, then 1h2m3.5s", "took <duration>, then <duration>"},
		"pointer":    {"object 0xc000123456", "object <pointer>"},
		"hash":       {"pack " + strings.Repeat("ab12", 16) + " is damaged", "pack <id> is damaged"},
		"request id": {"StatusCode: 503, RequestID: 4442587FB7D0A2F9, HostID: a1+/B2=, api error", "StatusCode: 503, RequestID: <id>, HostID: <id>, api error"},
		"lines":      {"one\ntwo\r\nthree", "one; two; three"},
		"credentials": {`Get "https://user:pa%20ss@s3.example.com/b?X-Amz-Signature=abc&x=1#f": EOF`,
			`Get "https://s3.example.com/b": EOF`},
		"an at sign in a password": {"open s3://key:p@ss/word@bucket/dir failed", "open s3://bucket/dir failed"},
		"a query without a scheme": {"PUT /b/k?X-Amz-Credential=AKIA&X-Amz-Date=1 failed", "PUT /b/k failed"},
		"headers":                  {"Authorization: Bearer abcdefgh.ijkl", "Authorization: <redacted>"},
		"assignments":              {"AWS_SECRET_ACCESS_KEY=abc password=x,y", "AWS_SECRET_ACCESS_KEY=<redacted> password=<redacted>"},
		"a secret's name stays":    {`secret "repo-key" not found`, `secret "repo-key" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, cmp.Diff(tc.want, reconcilekit.StableText(tc.in)))
		})
	}
}

func TestStableMessageIsBounded(t *testing.T) {
	got := reconcilekit.StableMessage(errors.New(strings.Repeat("äöü ", 1000)))
	require.LessOrEqual(t, len(got), 1000)
	require.Greater(t, len(got), 900)
	require.True(t, utf8.ValidString(got))
	require.True(t, strings.HasSuffix(got, "…"))
	require.Empty(t, reconcilekit.StableMessage(nil))
}
