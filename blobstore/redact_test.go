package blobstore

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"s3://bucket/a/b":                              "s3://bucket/a/b",
		"s3://key:secret@bucket/a":                     "s3://bucket/a",
		"s3://b?region=eu&endpoint=https://m:9000":     "s3://b?endpoint=https%3A%2F%2Fm%3A9000&region=eu",
		"s3://b?endpoint=https://u:p@m:9000?x=1":       "s3://b?endpoint=https%3A%2F%2Fm%3A9000%3Fx%3Dredacted",
		"s3://b?endpoint=u:p@m":                        "s3://b?endpoint=redacted",
		"s3://b?access_key=AK&secret_key=SK":           "s3://b?access_key=redacted&secret_key=redacted",
		"azblob://c?sv=2020&sig=abc%3D#frag":           "azblob://c?sig=redacted&sv=redacted",
		"s3:user:pass@host":                            "redacted",
		"s3://b?AKIA12345secret":                       "s3://b?redacted=redacted",
		"s3://%zz:secret@b":                            "s3://redacted",
		"rest:https://user:pw@host/":                   "redacted",
		"user:pw@host":                                 "redacted",
		"file:///backup/db?create_dir=true&prefix=a/b": "file:///backup/db?create_dir=true&prefix=a/b",
	} {
		require.Equal(t, want, Redact(in), in)
	}
}

func TestMessagesOfSDKsAreRedacted(t *testing.T) {
	const secret = "hunter2hunter2"
	for _, text := range []string{
		"Get \"https://u:" + secret + "@h/p\": dial",
		"see https://h/p?X-Amz-Signature=" + secret + "&X-Amz-Credential=" + secret + ".",
		"AccountKey=" + secret + ";EndpointSuffix=x",
		`{"access_token":"` + secret + `"}`,
		"Authorization: Bearer " + secret,
		"AWS_SECRET_ACCESS_KEY=" + secret,
		"sig=" + secret + "&se=1",
		"password: " + secret,
	} {
		require.NotContains(t, redactText(text), secret, text)
	}
	plain := "operation error S3: PutObject, https response error StatusCode: 503, RequestID: 1, api error SlowDown: Please reduce your request rate."
	require.Equal(t, plain, redactText(plain))
}

func FuzzRedact(f *testing.F) {
	for _, s := range []string{"s3://b", "s3://%s@b", "azblob://c/p?sig=%s", "s3:%s", "x?%s", "s3://b?endpoint=http://%s@h", "s3://b?region=eu#%s"} {
		f.Add(s, "user", "pass")
	}
	f.Fuzz(func(t *testing.T, raw, name, value string) {
		out := Redact(raw)
		if Redact(out) != out && !strings.Contains(out, "endpoint") {
			t.Errorf("redacting twice changes %q to %q", out, Redact(out))
		}
		const secret = "s3cr3tHunter2Z"
		if strings.Contains(raw+name+value, secret) {
			return
		}
		u := url.URL{Scheme: "s3", Host: "bucket", Path: "/p", User: url.UserPassword(name+secret, value+secret)}
		q := url.Values{}
		if !harmless[name] {
			q.Set(name, value+secret)
		}
		q.Set("endpoint", "https://"+secret+":"+secret+"@host?sig="+secret)
		u.RawQuery = q.Encode()
		if got := Redact(u.String()); strings.Contains(got, secret) {
			t.Errorf("a secret is left in %q", got)
		}
		if got := redactText("failed: " + u.String() + " again"); strings.Contains(got, secret) {
			t.Errorf("a secret is left in %q", got)
		}
	})
}
