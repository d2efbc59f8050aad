package crypto

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/poly1305" //nolint:staticcheck // the format demands the bare authenticator
)

const (
	ivSize  = aes.BlockSize
	tagSize = poly1305.TagSize
	// Overhead is how much longer a sealed message is than its plaintext, in bytes.
	Overhead = ivSize + tagSize
)

// ErrUnauthenticated means that a message was not sealed with this key, or was changed since.
var ErrUnauthenticated = errors.New("wrong key or damaged data: the authentication code does not match")

// Cipher seals and opens messages with one Key.
type Cipher struct {
	data, mac cipher.Block
	r         [16]byte
}

// Cipher prepares k for use.
func (k *Key) Cipher() *Cipher {
	data, err := aes.NewCipher(k.Encrypt[:])
	if err != nil {
		panic(err) // only for wrong key sizes, which the type rules out
	}
	mac, err := aes.NewCipher(k.MACK[:])
	if err != nil {
		panic(err)
	}
	return &Cipher{data: data, mac: mac, r: k.MACR}
}

// Seal appends the sealed form of plain to dst. plain must not overlap the free space behind dst.
func (c *Cipher) Seal(dst, plain []byte) []byte {
	var iv [ivSize]byte
	_, _ = rand.Read(iv[:]) // crypto/rand.Read never fails
	return c.seal(dst, plain, iv)
}

func (c *Cipher) seal(dst, plain []byte, iv [ivSize]byte) []byte {
	start := len(dst)
	dst = slices.Grow(dst, len(plain)+Overhead)[:start+len(plain)+Overhead]
	copy(dst[start:], iv[:])
	body := dst[start+ivSize : len(dst)-tagSize]
	cipher.NewCTR(c.data, iv[:]).XORKeyStream(body, plain)
	tag := c.tag(iv[:], body)
	copy(dst[len(dst)-tagSize:], tag[:])
	return dst
}

// OpenInPlace authenticates sealed and decrypts it where it is: the result is a part of sealed, which must not be used
// again. ErrUnauthenticated leaves sealed as it was.
func (c *Cipher) OpenInPlace(sealed []byte) ([]byte, error) {
	iv, body, err := c.authenticate(sealed)
	if err != nil {
		return nil, err
	}
	cipher.NewCTR(c.data, iv).XORKeyStream(body, body)
	return body, nil
}

// Open authenticates sealed, which stays as it is, and decrypts it into buf if that is large enough.
func (c *Cipher) Open(buf, sealed []byte) ([]byte, error) {
	iv, body, err := c.authenticate(sealed)
	if err != nil {
		return nil, err
	}
	plain := slices.Grow(buf[:0], len(body))[:len(body)]
	cipher.NewCTR(c.data, iv).XORKeyStream(plain, body)
	return plain, nil
}

func (c *Cipher) authenticate(sealed []byte) (iv, body []byte, err error) {
	if len(sealed) < Overhead {
		return nil, nil, fmt.Errorf("sealed data has %d bytes, at least %d are needed", len(sealed), Overhead)
	}
	iv, body = sealed[:ivSize], sealed[ivSize:len(sealed)-tagSize]
	if [ivSize]byte(iv) == [ivSize]byte{} {
		return nil, nil, errors.New("sealed data has an all-zero iv")
	}
	if want := c.tag(iv, body); subtle.ConstantTimeCompare(want[:], sealed[len(sealed)-tagSize:]) != 1 {
		return nil, nil, ErrUnauthenticated
	}
	return iv, body, nil
}

// tag is Poly1305 under the one-time key r || AES(k, iv).
func (c *Cipher) tag(iv, body []byte) [tagSize]byte {
	var key [32]byte
	copy(key[:16], c.r[:])
	c.mac.Encrypt(key[16:], iv)
	var tag [tagSize]byte
	poly1305.Sum(&tag, body, &key)
	return tag
}
