package blobstore

import (
	"net/url"
	"regexp"
	"sort"
	"strings"
)

const hidden = "redacted"

// harmless are the query parameters whose values may be shown. Everything else
// is hidden: a list of secrets would always miss the next one.
var harmless = map[string]bool{
	"region": true, "endpoint": true, "prefix": true, "profile": true, "role": true,
	"use_path_style": true, "disable_https": true, "anonymous": true, "dualstack": true, "fips": true,
	"accelerate": true, "request_checksum_calculation": true, "response_checksum_validation": true,
	"ssetype": true, "role_session_name": true, "ca_bundle": true, "universe_domain": true, "storage_account": true,
	"domain": true, "protocol": true, "create_dir": true,
}

// Redact returns rawURL without userinfo, fragment, and the values of all query
// parameters that could be credentials. What cannot be parsed is hidden but for
// its scheme.
func Redact(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Opaque != "" || (u.Scheme == "" && strings.Contains(rawURL, "@")) {
		return opaque(rawURL)
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		q = url.Values{}
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	u.RawQuery, u.ForceQuery = redactQuery(q), false
	return u.String()
}

var schemeOnly = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]{0,15}://`)

func opaque(raw string) string { return schemeOnly.FindString(raw) + hidden }

func redactQuery(q url.Values) string {
	keys := make([]string, 0, len(q))
	for k := range q {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var parts []string
	for _, k := range keys {
		name, known := k, harmless[k]
		if !known && !parameterName.MatchString(k) {
			name = hidden // a credential pasted in place of a name
		}
		for _, v := range q[k] {
			switch {
			case !known:
				v = hidden
			case k == "endpoint" && strings.Contains(v, "://"):
				v = url.QueryEscape(Redact(v))
			case strings.ContainsAny(v, "@?"):
				v = hidden
			default:
				v = strings.ReplaceAll(url.QueryEscape(v), "%2F", "/")
			}
			parts = append(parts, name+"="+v)
		}
	}
	return strings.Join(parts, "&")
}

var (
	parameterName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z_-]{0,31}$`)
	urlInText     = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>\x60]+`)
	pairInText    = regexp.MustCompile(`(?i)\b((?:x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)|sig|signature|accountkey|sharedaccesssignature|sharedkey|access_key|secret_key|secret|password|passwd|access_token|id_token|token|aws_secret_access_key|aws_session_token)["']?\s*[=:]\s*["']?)[^\s&;,"'<>]+`)
	bearerInText  = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[a-z0-9+/=._~-]{8,}`)
)

// redactText hides credentials in the messages of SDKs, which like to quote URLs.
func redactText(text string) string {
	text = urlInText.ReplaceAllStringFunc(text, func(u string) string {
		tail := strings.TrimRight(u, ".,:;)]}")
		return Redact(tail) + u[len(tail):]
	})
	text = bearerInText.ReplaceAllString(text, "$1 "+hidden)
	return pairInText.ReplaceAllString(text, "${1}"+hidden)
}
