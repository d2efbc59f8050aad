// Package stable makes texts of errors fit for conditions. It imports nothing but the standard library, so that fuzzing it compiles nothing else.
package stable

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxMessage is the longest message in bytes. Events take 1024.
const maxMessage = 1000

// Text returns text without what differs each time the same thing
// happens, and without credentials: URLs lose userinfo, query and fragment;
// UIDs, resource versions, times, fractional durations, network addresses and
// ports, pointers, long hexadecimal numbers and request ids become placeholders;
// line breaks become "; ". The result is at most 1000 bytes long and does not
// change when given to Text again.
func Text(text string) string {
	text = head(text)
	for range 64 { // each round consumes some of the text; two are the rule
		next := shorten(replaceVolatile(text))
		if next == text {
			break
		}
		text = next
	}
	return text
}

type replacement struct {
	pattern *regexp.Regexp
	with    string
}

// replacements are applied in this order: credentials first, so that nothing
// else can cut one in half, and times before anything that looks for numbers.
var replacements = []replacement{
	{regexp.MustCompile(`\b([A-Za-z][A-Za-z0-9+.-]*://)[^\s"'<>` + "`" + `]*@`), "$1"},
	{regexp.MustCompile(`\b([A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>` + "`" + `?#]*)[?#][^\s"'<>` + "`" + `]*`), "$1"},
	{regexp.MustCompile(`\?[A-Za-z0-9_.~%-]+=[^\s"'<>` + "`" + `]*`), ""},
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}`), "<redacted>"},
	{regexp.MustCompile(`(?i)\b([a-z0-9_-]*(?:password|passwd|secret|token|signature|credential|access_?key|account_?key)[a-z0-9_-]*=)[^\s<]\S*`), "$1<redacted>"},
	{regexp.MustCompile(`(?i)\b(x-amz-request-id|x-amz-id-2|(?:x-ms-)?(?:client-)?request[ _-]?id|host[ _-]?id|trace[ _-]?id)("?\s*[:=]?\s*"?)[A-Za-z0-9+/=_-]*[0-9][A-Za-z0-9+/=_-]*`), "$1$2<id>"},
	{regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "<uid>"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z| ?[+-]\d\d:?\d\d\b)?(?: [A-Z]{3,4}\b)?(?: m=[+-][\d.]+)?`), "<time>"},
	{regexp.MustCompile(`\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d(?: [A-Z]{3}\b)?`), "<time>"},
	{regexp.MustCompile(`(?i)\b(resource ?version"?\s*[:=]?\s*"?)\d+`), "$1<version>"},
	{regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b(?::\d{1,5}\b)?`), "<address>"},
	{regexp.MustCompile(`\[[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(?:%[0-9A-Za-z]+)?\](?::\d{1,5}\b)?`), "<address>"},
	{regexp.MustCompile(`\b[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4}){7}\b`), "<address>"},
	{regexp.MustCompile(`\b[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4})*::(?:[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4})*)?`), "<address>"},
	{regexp.MustCompile(`\b0x[0-9a-fA-F]{6,}\b`), "<pointer>"},
	{regexp.MustCompile(`(?i)\b[0-9a-f]{32,}\b`), "<id>"},
	{regexp.MustCompile(`\b([A-Za-z0-9-]*[A-Za-z](?:[A-Za-z0-9.-]*[A-Za-z0-9])?):\d{2,5}\b`), "$1:<port>"},
	{regexp.MustCompile(`\b(?:\d+[hm])*\d+\.\d+(?:ns|µs|us|ms|s|m|h)\b`), "<duration>"},
}

func replaceVolatile(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Join(strings.FieldsFunc(text, isLineBreak), "; ")
	for _, r := range replacements {
		text = r.pattern.ReplaceAllString(text, r.with)
	}
	return strings.TrimSpace(text)
}

func isLineBreak(r rune) bool { return r == '\n' || r == '\r' || r == 0 }

const ellipsis = "…"

// maxInput is how much of a text is looked at, in bytes.
const maxInput = 16 << 10

// head returns the words of text that fit into maxInput. A word is never cut: a
// password whose "@" is cut off is not recognised any more.
func head(text string) string {
	if len(text) <= maxInput {
		return text
	}
	return text[:strings.LastIndexAny(text[:maxInput], " \n")+1] + ellipsis
}

// shorten cuts text to maxMessage bytes, at a space when there is one near, so
// that half a word does not look like something else.
func shorten(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	end := maxMessage - len(ellipsis)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	if space := strings.LastIndexByte(text[:end], ' '); space > end-100 {
		end = space
	}
	return strings.TrimRight(text[:end], " "+ellipsis) + ellipsis
}
