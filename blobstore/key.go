package blobstore

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxKey is the longest key in bytes, prefix included, that every store takes.
const maxKey = 1024

// CheckKey says whether a key is one that every store can hold: valid UTF-8
// without control characters and backslashes, at most 1,024 bytes, made of
// non-empty segments other than "." and ".." between slashes, and without
// "__0x", which gocloud reserves for escapes.
func CheckKey(key string) error {
	if key == "" {
		return fmt.Errorf("key is empty")
	}
	if len(key) > maxKey {
		return fmt.Errorf("key of %d bytes is longer than %d", len(key), maxKey)
	}
	if err := checkText(key); err != nil {
		return err
	}
	for seg := range strings.SplitSeq(key, "/") {
		if seg == "" || seg == "." || seg == ".." {
			return fmt.Errorf("key %q has the segment %q", key, seg)
		}
	}
	return nil
}

// checkPrefix is CheckKey for plain string prefixes, whose last segment may be
// anything that a key could start with.
func checkPrefix(prefix string) error {
	if err := checkText(prefix); err != nil {
		return err
	}
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		return CheckKey(prefix[:i])
	}
	return nil
}

func checkText(s string) error {
	switch {
	case !utf8.ValidString(s):
		return fmt.Errorf("key %q is not valid UTF-8", s)
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == '\\' }):
		return fmt.Errorf("key %q has a control character or backslash", s)
	case strings.Contains(s, "__0x"):
		return fmt.Errorf("key %q has the reserved text \"__0x\"", s)
	}
	return nil
}

func (s *Store) fullKey(op, key string) (string, error) {
	err := CheckKey(key)
	if err == nil && s.prefix != "" {
		err = CheckKey(s.prefix + key)
	}
	if err == nil && s.driver.CheckKey != nil {
		err = s.driver.CheckKey(s.prefix + key)
	}
	if err != nil {
		return "", &Error{Op: op, Key: key, Kind: KindInvalid, Err: err}
	}
	return s.prefix + key, nil
}
