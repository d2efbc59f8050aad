// Package crypto seals and opens what a repository stores: AES-256-CTR with Poly1305-AES, and keys from passwords by scrypt.
//
// # What it does
//
// A sealed message is IV (16 bytes) || AES-256-CTR(plaintext) || Poly1305-AES(ciphertext) (16 bytes), as in the restic
// repository format.
//
// # Minimal use
//
//	c := crypto.NewKey().Cipher()
//	sealed := c.Seal(nil, plain)
//	plain, err := c.OpenInPlace(sealed)
//
// # Guarantees
//
// The authentication code is compared in constant time before anything is decrypted. Short input is an error, never a
// panic. A Cipher may be used by many goroutines at once.
//
// # What it never does
//
// It binds no ciphertext to a name: callers compare hashes after reading.
package crypto
