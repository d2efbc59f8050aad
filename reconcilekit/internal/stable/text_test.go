package stable_test

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/pvcbackup/reconcilekit/internal/stable"
)

func TestAPasswordIsNeverCutInHalf(t *testing.T) {
	long := strings.Repeat("p", 20<<10)
	for _, text := range []string{"x://user:" + long + "@host failed", "opening x://user:" + long + "@host failed"} {
		if got := stable.Text(text); strings.Contains(got, "pp") {
			t.Errorf("the password shows in %q", got)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"", "dial tcp 10.96.0.1:443: refused", "a\xff\n\nb", "x://a:b@c?d#e", "fd00::1", "[::]:1", "1.2.3.4.5:6",
		"2026-03-01T12:00:00Z", strings.Repeat("1.2.3.4 ", 400), strings.Repeat("a:11", 500), strings.Repeat("0x123456", 200),
		"password=token=<x", "RequestID=1 <id>2", "?a=b?c=d", "://@", "…" + strings.Repeat("…", 400),
	} {
		f.Add(seed, "user", "pa:s/s")
	}
	f.Fuzz(func(t *testing.T, text, user, password string) {
		once := stable.Text(text)
		if len(once) > 1000 || !utf8.ValidString(once) {
			t.Fatalf("%d bytes, or not UTF-8: %q", len(once), once)
		}
		if again := stable.Text(once); again != once {
			t.Fatalf("not idempotent for %q:\n%q\n%q", text, once, again)
		}
		secret := "Zq" + password + "qZ"
		u := url.URL{Scheme: "s3", User: url.UserPassword(user, secret), Host: "bucket", RawQuery: "key=" + url.QueryEscape(secret)}
		if got := stable.Text("opening " + u.String() + ": denied"); strings.Contains(got, "Zq") || strings.Contains(got, "qZ") {
			t.Fatalf("%q shows the password of %q", got, u.String())
		}
	})
}
