package repo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"example.com/pvcbackup/backup/repo/id"
	"example.com/pvcbackup/backup/repo/internal/crypto"
)

// maxKeys bounds how many key files are tried: each try costs a full key derivation.
const maxKeys = 20

// ScryptParams are the cost of deriving a key from a password. The zero value means N 32768, r 8, p 1: about 32 MiB and
// a tenth of a second. Cheaper ones are for tests.
type ScryptParams struct{ N, R, P int }

// KeyInfo describes a key file.
type KeyInfo struct {
	ID       ID
	Created  time.Time
	Username string
	Hostname string
	Scrypt   ScryptParams
	Current  bool // this repository was opened with it
}

// KeyOptions describes a key to be added.
type KeyOptions struct {
	Username string // free text
	Hostname string // free text
	Scrypt   ScryptParams
}

// keyFile is the content of an object below keys/.
type keyFile struct {
	Created  time.Time `json:"created"`
	Username string    `json:"username"`
	Hostname string    `json:"hostname"`
	KDF      string    `json:"kdf"`
	N        int       `json:"N"`
	R        int       `json:"r"`
	P        int       `json:"p"`
	Salt     []byte    `json:"salt"`
	Data     []byte    `json:"data"`
}

// masterKey is what a key file's Data holds.
type masterKey struct {
	MAC struct {
		K []byte `json:"k"`
		R []byte `json:"r"`
	} `json:"mac"`
	Encrypt []byte `json:"encrypt"`
}

func parseKeyFile(text []byte) (*keyFile, error) {
	var k keyFile
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, err
	}
	switch {
	case k.KDF != "scrypt":
		return nil, fmt.Errorf("the key derivation %.20q is not scrypt", k.KDF)
	case len(k.Salt) != crypto.SaltSize:
		return nil, fmt.Errorf("the salt has %d bytes, not %d", len(k.Salt), crypto.SaltSize)
	case len(k.Data) <= crypto.Overhead:
		return nil, fmt.Errorf("the sealed master key has only %d bytes", len(k.Data))
	}
	return &k, k.params().Check()
}

func (k *keyFile) params() crypto.Params { return crypto.Params{N: k.N, R: k.R, P: k.P} }

// open returns the master key; crypto.ErrUnauthenticated means a wrong password.
func (k *keyFile) open(password string) (crypto.Key, error) {
	derived, err := crypto.Derive(password, k.Salt, k.params())
	if err != nil {
		return crypto.Key{}, err
	}
	text, err := derived.Cipher().OpenInPlace(append([]byte(nil), k.Data...))
	if err != nil {
		return crypto.Key{}, err
	}
	return parseMasterKey(text)
}

func parseMasterKey(text []byte) (crypto.Key, error) {
	var m masterKey
	if err := json.Unmarshal(text, &m); err != nil {
		return crypto.Key{}, errors.New("the master key is not valid JSON") // the cause could repeat parts of the key
	}
	var key crypto.Key
	if len(m.Encrypt) != len(key.Encrypt) || len(m.MAC.K) != len(key.MACK) || len(m.MAC.R) != len(key.MACR) {
		return crypto.Key{}, errors.New("a part of the master key has a wrong length")
	}
	key = crypto.Key{Encrypt: [32]byte(m.Encrypt), MACK: [16]byte(m.MAC.K), MACR: [16]byte(m.MAC.R)}
	return key, key.Check()
}

// sealKey makes the bytes of a key file with which password opens master.
func sealKey(master crypto.Key, password string, o KeyOptions, now time.Time) ([]byte, error) {
	k := keyFile{Created: now, Username: o.Username, Hostname: o.Hostname, KDF: "scrypt", Salt: make([]byte, crypto.SaltSize)}
	p := crypto.Params(o.Scrypt)
	if o.Scrypt == (ScryptParams{}) {
		p = crypto.Default
	}
	k.N, k.R, k.P = p.N, p.R, p.P
	_, _ = rand.Read(k.Salt) // crypto/rand.Read never fails
	derived, err := crypto.Derive(password, k.Salt, p)
	if err != nil {
		return nil, err
	}
	var m masterKey
	m.Encrypt, m.MAC.K, m.MAC.R = master.Encrypt[:], master.MACK[:], master.MACR[:]
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	k.Data = derived.Cipher().Seal(nil, text)
	return json.Marshal(k)
}

// saveKey writes a key file, reads it back, and returns its ID.
func saveKey(ctx context.Context, s Store, master crypto.Key, password string, o KeyOptions, now time.Time) (ID, error) {
	text, err := sealKey(master, password, o, now)
	if err != nil {
		return ID{}, fmt.Errorf("make a key: %w", err)
	}
	name := id.Hash(text)
	if err := putFile(ctx, s, KeyFile.Key(name), text, name); err != nil {
		return ID{}, err
	}
	_, err = loadRaw(ctx, s, KeyFile, name, maxKeyFile)
	return name, err
}

func loadKey(ctx context.Context, s Store, name ID) (*keyFile, error) {
	text, err := loadRaw(ctx, s, KeyFile, name, maxKeyFile)
	if err != nil {
		return nil, err
	}
	k, err := parseKeyFile(text)
	if err != nil {
		return nil, damaged(KeyFile.Key(name), "%w", err)
	}
	return k, nil
}

// AddKey makes another password open the repository and returns the new key file's ID. It needs no lock.
func (r *Repository) AddKey(ctx context.Context, password string, o KeyOptions) (ID, error) {
	return saveKey(ctx, r.store, r.master, password, o, r.clock.Now())
}

// RemoveKey makes the password of a key file useless. The key that this repository was opened with cannot be removed
// and must still be there, so that one always remains: ErrKeyInUse otherwise. Call it under the exclusive lock.
func (r *Repository) RemoveKey(ctx context.Context, name ID) error {
	own := r.keyID
	if name == own {
		return fmt.Errorf("key %s: %w: open the repository with another password to remove it", name.Short(), ErrKeyInUse)
	}
	found, err := exists(ctx, r.store, KeyFile.Key(own))
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("key %s: %w: the one that the repository was opened with was removed, so this may be the last",
			name.Short(), ErrKeyInUse)
	}
	if err := r.store.Delete(ctx, KeyFile.Key(name)); err != nil {
		return fmt.Errorf("remove key %s: %w", name.Short(), err)
	}
	return nil
}

// ChangeKey gives the repository another password in the place of the one that it was opened with, and returns the new
// key file's ID. No data is written anew: the master key stays. If it fails, the old password works, and the new one
// may. Call it under the exclusive lock, and open the repository anew afterwards to change keys again.
func (r *Repository) ChangeKey(ctx context.Context, password string, o KeyOptions) (ID, error) {
	added, err := r.AddKey(ctx, password, o)
	if err != nil {
		return ID{}, err
	}
	k, err := loadKey(ctx, r.store, added)
	if err != nil {
		return ID{}, err
	}
	if master, err := k.open(password); err != nil || master != r.master {
		return ID{}, fmt.Errorf("key %s does not open with the new password: %w", added.Short(), ErrUnverified)
	}
	return added, r.RemoveFile(ctx, KeyFile, r.keyID)
}

// ListKeys describes all key files, in the order of their IDs. A damaged one is an error.
func (r *Repository) ListKeys(ctx context.Context) ([]KeyInfo, error) {
	files, err := collectFiles(ctx, r.store, KeyFile)
	if err != nil {
		return nil, err
	}
	keys := make([]KeyInfo, 0, len(files))
	for _, f := range files {
		k, err := loadKey(ctx, r.store, f.ID)
		if err != nil {
			return nil, err
		}
		keys = append(keys, KeyInfo{
			ID: f.ID, Created: k.Created, Username: k.Username, Hostname: k.Hostname,
			Scrypt: ScryptParams(k.params()), Current: f.ID == r.keyID,
		})
	}
	return keys, nil
}
