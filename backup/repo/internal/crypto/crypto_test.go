package crypto

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	require.NoError(t, err)
	return b
}

func vectorKey(t testing.TB) *Key {
	return &Key{
		Encrypt: [32]byte(unhex(t, "303e8687b1d7db18421bdc6bb8588ccadac4d59ee87b8ff70c44e635790cafef")),
		MACK:    [16]byte(unhex(t, "ef4d8824cb80b2bcc5fbff8a9b12a42c")),
		MACR:    [16]byte(unhex(t, "cc8d4b948ee0ebfe1d415de921d10353")),
	}
}

func TestSealMatchesTheFormatsVectors(t *testing.T) {
	c := vectorKey(t).Cipher()
	for plain, want := range map[string]string{
		"Dies ist ein Test!": "69fb41c62d12def4593bd71757138606338f621aeaeb39da0fe4f99233f8037a54ea63338a813bcf3f75d8c3cc75dddf8750",
		"":                   "000102030405060708090a0b0c0d0e0f73c7ade3643227533f25ca00e966ceb3",
		"{}":                 "000102030405060708090a0b0c0d0e0f6fc286e1b08fa7ae236ca4b2acfc426410b8",
	} {
		t.Run(plain, func(t *testing.T) {
			sealed := unhex(t, want)
			got := hex.EncodeToString(c.seal(nil, []byte(plain), [ivSize]byte(sealed)))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			opened, err := c.OpenInPlace(sealed)
			require.NoError(t, err)
			require.Equal(t, plain, string(opened))
		})
	}
}

// The four messages are those of the paper that defines Poly1305-AES.
func TestTagMatchesThePublishedVectors(t *testing.T) {
	for name, v := range map[string]struct{ msg, r, k, nonce, tag string }{
		"two bytes": {"f3f6", "851fc40c3467ac0be05cc20404f3f700", "ec074c835580741701425b623235add6", "fb447350c4e868c52ac3275cf9d4327e", "f4c633c3044fc145f84f335cb81953de"},
		"empty":     {"", "a0f3080000f46400d0c7e9076c834403", "75deaa25c09f208e1dc4ce6b5cad3fbf", "61ee09218d29b0aaed7e154a2c5509cc", "dd3fab2251f11ac759f0887129cc2ee7"},
		"32 bytes":  {"663cea190ffb83d89593f3f476b6bc24d7e679107ea26adb8caf6652d0656136", "48443d0bb0d21109c89a100b5ce2c208", "6acb5f61a7176dd320c5c1eb2edcdc74", "ae212a55399729595dea458bc621ff0e", "0ee1c16bb73f0f4fd19881753c01cdbe"},
		"63 bytes":  {"ab0812724a7f1e342742cbed374d94d136c6b8795d45b3819830f2c04491faf0990c62e48b8018b2c3e4a0fa3134cb67fa83e158c994d961c4cb21095c1bf9", "12976a08c4426d0ce8a82407c4f48207", "e1a5668a4d5b66a5f68cc5424ed5982d", "9ae831e743978d3a23527c7128149e3a", "5154ad0d2cb26e01274fc51148491f1b"},
	} {
		t.Run(name, func(t *testing.T) {
			k := Key{MACK: [16]byte(unhex(t, v.k)), MACR: [16]byte(unhex(t, v.r))}
			tag := k.Cipher().tag(unhex(t, v.nonce), unhex(t, v.msg))
			if diff := cmp.Diff(v.tag, hex.EncodeToString(tag[:])); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDeriveMatchesTheFormatsVector(t *testing.T) {
	k, err := Derive("test", bytes.Repeat([]byte{1}, SaltSize), Default)
	require.NoError(t, err)
	got := hex.EncodeToString(k.Encrypt[:]) + " " + hex.EncodeToString(k.MACK[:]) + " " + hex.EncodeToString(k.MACR[:])
	want := "93537e657d064eec7312583a206fa8ec2f9b3656bc51016d519b4697e0c174f5 43c1bf9dcbeeca01c7229e855c78b302 74ae3be68671cb791ba93cefb020f0fa"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDeriveRefusesBadInput(t *testing.T) {
	salt := make([]byte, SaltSize)
	for name, try := range map[string]func() (Key, error){
		"short salt":         func() (Key, error) { return Derive("p", salt[1:], Default) },
		"empty password":     func() (Key, error) { return Derive("", salt, Default) },
		"N no power of two":  func() (Key, error) { return Derive("p", salt, Params{N: 1000, R: 8, P: 1}) },
		"N too small":        func() (Key, error) { return Derive("p", salt, Params{N: 1, R: 8, P: 1}) },
		"no r":               func() (Key, error) { return Derive("p", salt, Params{N: 2, P: 1}) },
		"too much memory":    func() (Key, error) { return Derive("p", salt, Params{N: 1 << 30, R: 8, P: 1}) },
		"too much time":      func() (Key, error) { return Derive("p", salt, Params{N: 2, R: 8, P: 1 << 20}) },
		"r beyond the limit": func() (Key, error) { return Derive("p", salt, Params{N: 2, R: 1 << 40, P: 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := try()
			require.Error(t, err)
		})
	}
}

func TestCheckRefusesKeysWithAZeroPart(t *testing.T) {
	whole := NewKey()
	require.NoError(t, whole.Check())
	for name, spoil := range map[string]func(*Key){
		"encrypt": func(k *Key) { k.Encrypt = [32]byte{} },
		"mac k":   func(k *Key) { k.MACK = [16]byte{} },
		"mac r":   func(k *Key) { k.MACR = [16]byte{} },
	} {
		t.Run(name, func(t *testing.T) {
			k := NewKey()
			spoil(&k)
			require.Error(t, k.Check())
		})
	}
}

func TestOpenRefusesAnAllZeroIV(t *testing.T) {
	c := vectorKey(t).Cipher()
	_, err := c.OpenInPlace(c.seal(nil, []byte("x"), [ivSize]byte{}))
	require.ErrorContains(t, err, "all-zero iv")
}

func TestEveryChangedBitIsNoticed(t *testing.T) {
	c := vectorKey(t).Cipher()
	sealed := c.Seal(nil, []byte("a message"))
	for bit := range len(sealed) * 8 {
		spoiled := bytes.Clone(sealed)
		spoiled[bit/8] ^= 1 << (bit % 8)
		_, err := c.OpenInPlace(spoiled)
		require.ErrorIs(t, err, ErrUnauthenticated, "bit %d", bit)
	}
}

func FuzzOpen(f *testing.F) {
	key := vectorKey(f)
	c := key.Cipher()
	f.Add([]byte{})
	f.Add(make([]byte, Overhead-1))
	f.Add(c.Seal(nil, []byte("x")))
	f.Fuzz(func(t *testing.T, data []byte) {
		opened, err := c.OpenInPlace(bytes.Clone(data))
		if err == nil && len(opened) != len(data)-Overhead {
			t.Fatalf("opened %d bytes of %d", len(opened), len(data))
		}
		again, err := c.OpenInPlace(c.Seal([]byte("before"), data)[len("before"):])
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("round trip: %v", err)
		}
	})
}
