// Package naming builds object names. It imports nothing of Kubernetes, so that
// it can be fuzzed without instrumenting all of it.
package naming

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"
)

const (
	maxName  = 63
	hashLen  = 16 // base32 characters, 80 bits
	maxStem  = maxName - hashLen - 1
	emptyTag = "x"
)

// Name is what snapshot.Name documents.
func Name(prefix string, parts ...string) string {
	all := append([]string{prefix}, parts...)
	stem := labelOf(strings.Join(all, "-"))
	if len(stem) > maxStem {
		stem = strings.TrimRight(stem[:maxStem], "-")
	}
	if stem == "" {
		stem = emptyTag
	}
	return stem + "-" + hashOf(all)
}

func hashOf(parts []string) string {
	h := sha256.New()
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	text := base32.StdEncoding.EncodeToString(h.Sum(nil))
	return strings.ToLower(text[:hashLen])
}

func labelOf(text string) string {
	var out strings.Builder
	for _, r := range strings.ToLower(text) {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
			out.WriteRune(r)
		} else if s := out.String(); s != "" && s[len(s)-1] != '-' {
			out.WriteByte('-')
		}
	}
	return strings.TrimRight(out.String(), "-")
}
