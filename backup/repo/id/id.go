package id

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Size is the length of an ID in bytes.
const Size = sha256.Size

// ID is a SHA-256. The zero value names nothing.
type ID [Size]byte

// Hash returns the ID of data.
func Hash(data []byte) ID { return sha256.Sum256(data) }

// Parse reads what String writes: 64 lower-case hexadecimal characters.
func Parse(s string) (ID, error) {
	var id ID
	if len(s) != 2*Size {
		return ID{}, fmt.Errorf("id %.80q has %d characters, not %d", s, len(s), 2*Size)
	}
	for _, c := range []byte(s) {
		if !isLowerHex(c) {
			return ID{}, fmt.Errorf("id %.80q is not lower-case hexadecimal", s)
		}
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return ID{}, fmt.Errorf("id %.80q: %w", s, err)
	}
	return id, nil
}

func isLowerHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }

// String returns 64 lower-case hexadecimal characters.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Short returns the first eight characters, which is what people compare.
func (id ID) Short() string { return hex.EncodeToString(id[:4]) }

// IsZero reports whether id names nothing.
func (id ID) IsZero() bool { return id == ID{} }

// MarshalText implements encoding.TextMarshaler, which encoding/json uses for values and map keys.
func (id ID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler; it accepts what Parse accepts.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}
