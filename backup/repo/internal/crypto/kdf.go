package crypto

import (
	"errors"
	"fmt"

	"golang.org/x/crypto/scrypt"
)

// SaltSize is the length of the salt of a key file, in bytes.
const SaltSize = 64

// Limits on what a key file may ask for, so that a damaged or hostile one cannot exhaust a process: 1 GiB and a few
// minutes of one core.
const (
	maxScryptMemory = 1 << 30
	maxScryptP      = 64
)

// Params are scrypt's cost parameters.
type Params struct{ N, R, P int }

// Default is what restic arrives at on common machines: about 32 MiB and 0.1 s.
var Default = Params{N: 1 << 15, R: 8, P: 1}

// Check refuses parameters that scrypt cannot take or that cost too much.
func (p Params) Check() error {
	switch {
	case p.N < 2 || p.N&(p.N-1) != 0:
		return fmt.Errorf("scrypt N %d is not a power of two above 1", p.N)
	case p.R < 1 || p.P < 1:
		return fmt.Errorf("scrypt r %d and p %d must be positive", p.R, p.P)
	case p.N > maxScryptMemory/128/p.R || p.P > maxScryptP:
		return fmt.Errorf("scrypt parameters N %d, r %d, p %d cost too much", p.N, p.R, p.P)
	}
	return nil
}

// Derive returns the key that password gives with a salt of SaltSize bytes.
func Derive(password string, salt []byte, p Params) (Key, error) {
	if len(salt) != SaltSize {
		return Key{}, fmt.Errorf("the salt has %d bytes, not %d", len(salt), SaltSize)
	}
	if password == "" {
		return Key{}, errors.New("the password is empty")
	}
	if err := p.Check(); err != nil {
		return Key{}, err
	}
	raw, err := scrypt.Key([]byte(password), salt, p.N, p.R, p.P, 64)
	if err != nil {
		return Key{}, fmt.Errorf("derive key: %w", err)
	}
	return Key{Encrypt: [32]byte(raw[:32]), MACK: [16]byte(raw[32:48]), MACR: [16]byte(raw[48:])}, nil
}
