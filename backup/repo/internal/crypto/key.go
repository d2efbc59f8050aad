package crypto

import (
	"crypto/rand"
	"errors"
)

// Key is what seals and authenticates: an AES-256 key and the two halves of a Poly1305-AES key.
type Key struct {
	Encrypt [32]byte
	MACK    [16]byte // AES-128 key of the authenticator
	MACR    [16]byte // Poly1305 r, not clamped
}

// NewKey returns a random key.
func NewKey() Key {
	var k Key
	_, _ = rand.Read(k.Encrypt[:]) // crypto/rand.Read never fails
	_, _ = rand.Read(k.MACK[:])
	_, _ = rand.Read(k.MACR[:])
	return k
}

// Check refuses keys of which a part is all zero: they come from lost data, not from a generator.
func (k *Key) Check() error {
	if k.Encrypt == [32]byte{} || k.MACK == [16]byte{} || k.MACR == [16]byte{} {
		return errors.New("a part of the key is all zero")
	}
	return nil
}
