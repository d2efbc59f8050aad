package chunker

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	restic "github.com/restic/chunker"
	"github.com/stretchr/testify/require"
)

const polynomial = 0x3DA3358B4DC173

func random(seed int64, n int) []byte {
	r := rand.New(rand.NewSource(seed))
	b := make([]byte, 0, n+4)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint32(b, r.Uint32())
	}
	return b[:n]
}

func splitter(t testing.TB, kind Kind) Splitter {
	t.Helper()
	s, err := New(kind, polynomial, 0)
	require.NoError(t, err)
	return s
}

// cuts splits data as a reader would, through a window of exactly the length that is promised to be enough.
func cuts(t testing.TB, s Splitter, data []byte) []Cut {
	t.Helper()
	var all []Cut
	for offset := 0; offset < len(data); {
		c := s.Next(data[offset:min(len(data), offset+s.Window())], int64(offset))
		require.Positive(t, c.Length)
		require.LessOrEqual(t, c.Length, s.Max())
		if c.Zero {
			require.Equal(t, ZeroSize, c.Length)
			require.True(t, AllZero(data[offset:offset+c.Length]))
		}
		all = append(all, c)
		offset += c.Length
	}
	return all
}

func lengths(all []Cut) []int {
	var out []int
	for _, c := range all {
		out = append(out, c.Length)
	}
	return out
}

var kinds = []Kind{Gear, Rabin, Fixed}

func TestRabinCutsTheFormatsPublishedVector(t *testing.T) {
	got := lengths(cuts(t, splitter(t, Rabin), random(23, 32<<20)))
	if diff := cmp.Diff([]int{2163460, 643703, 1528956, 1955808, 2222372}, got[:5]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRabinCutsExactlyAsRestic(t *testing.T) {
	mixed := bytes.Join([][]byte{random(1, 3<<20), make([]byte, 5<<20+17), random(2, 100), make([]byte, 700<<10), random(3, 2<<20), make([]byte, 9<<20)}, nil)
	s := splitter(t, Rabin)
	for name, data := range map[string][]byte{
		"random": random(4, 20<<20), "with zeros": mixed, "zeros": make([]byte, 3<<20+5), "small": random(5, 1000), "empty": nil,
	} {
		var want []int
		c := restic.New(bytes.NewReader(data), polynomial)
		for {
			chunk, err := c.Next(make([]byte, restic.MaxSize))
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			want = append(want, int(chunk.Length))
		}
		if diff := cmp.Diff(want, lengths(cuts(t, s, data))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestGearNeverChangesItsCuts(t *testing.T) {
	data := random(23, 32<<20)
	hash := sha256.New()
	for _, n := range lengths(cuts(t, splitter(t, Gear), data)) {
		fmt.Fprintln(hash, n)
	}
	const want = "34f6fd34724c12e744bf9261a23f3c1085acb317b5e425e7aef964591a5f435b"
	if diff := cmp.Diff(want, hex.EncodeToString(hash.Sum(nil))); diff != "" {
		t.Errorf("every file over 512 KiB would be stored again: -want +got:\n%s", diff)
	}
}

func TestGearIsKeyedByThePolynomial(t *testing.T) {
	data := random(6, 16<<20)
	other, err := New(Gear, polynomial+2, 0)
	require.NoError(t, err)
	require.NotEqual(t, cuts(t, splitter(t, Gear), data), cuts(t, other, data))
}

func TestAFileOfUpTo512KiBIsOneChunk(t *testing.T) {
	for _, kind := range kinds {
		for _, n := range []int{1, 1000, ZeroSize - 1, ZeroSize} {
			s := splitter(t, kind)
			require.Len(t, cuts(t, s, random(7, n)), 1, "%s, %d random bytes", kind, n)
			require.Len(t, cuts(t, s, make([]byte, n)), 1, "%s, %d zeros", kind, n)
		}
	}
}

func TestZeroRunsAreCutIntoZeroChunksOf512KiB(t *testing.T) {
	const run = 7
	for _, kind := range []Kind{Gear, Fixed} {
		for name, parts := range map[string][2][]byte{
			"alone":       {},
			"at the end":  {random(8, 3<<20), nil},
			"in front":    {nil, random(9, 3<<20)},
			"in between":  {random(10, 1<<20), random(11, 1<<20)},
			"odd place":   {random(12, 1<<20+12345), random(13, 777)},
			"after a bit": {random(14, 10), random(15, 10)},
		} {
			data := bytes.Join([][]byte{parts[0], make([]byte, run*ZeroSize), parts[1]}, nil)
			zeros := 0
			for _, c := range cuts(t, splitter(t, kind), data) {
				if c.Zero {
					zeros++
				}
			}
			least := run
			if kind == Fixed {
				least = run - 3 // a fixed chunk that holds one byte of data stays whole
			}
			require.GreaterOrEqual(t, zeros, least, "%s %s", kind, name)
		}
	}
}

func TestAZeroChunkHasTheIDThatResticRestoresAsAHole(t *testing.T) {
	sum := sha256.Sum256(make([]byte, ZeroSize))
	require.Equal(t, "07854d2fef297a06ba81685e660c332de36d5d18d546927d30daad6d7fda1541", hex.EncodeToString(sum[:]))
}

func TestZerosAgreesWithNext(t *testing.T) {
	for _, kind := range kinds {
		s := splitter(t, kind)
		for _, n := range []int{0, 1, ZeroSize - 1, ZeroSize, ZeroSize + 1, 5*ZeroSize + 3} {
			for _, start := range []int64{0, ZeroSize, 3 * ZeroSize} {
				if kind != Fixed {
					start += 12345
				}
				want := s.Zeros(start, int64(n))
				got := int64(0)
				for data := append(make([]byte, n), 1); ; {
					c := s.Next(data[got:], start+got)
					if !c.Zero {
						break
					}
					got += int64(c.Length)
				}
				require.Equal(t, want, got, "%s, %d zeros at %d", kind, n, start)
			}
		}
	}
}

func TestFixedCutsAtMultiplesOfItsSize(t *testing.T) {
	offset := 0
	data := append(random(16, 5<<20), make([]byte, 3<<20)...)
	for _, c := range cuts(t, splitter(t, Fixed), data) {
		require.Zero(t, offset%ZeroSize)
		if !c.Zero {
			require.Zero(t, offset%DefaultFixedSize)
		}
		offset += c.Length
	}
}

func TestGearFindsItsCutsAgainAfterAnInsertion(t *testing.T) {
	data := random(17, 32<<20)
	known := map[[32]byte]bool{}
	each := func(data []byte, f func([]byte)) {
		for _, c := range cuts(t, splitter(t, Gear), data) {
			f(data[:c.Length])
			data = data[c.Length:]
		}
	}
	each(data, func(b []byte) { known[sha256.Sum256(b)] = true })
	fresh := 0
	each(append([]byte("inserted"), data...), func(b []byte) {
		if !known[sha256.Sum256(b)] {
			fresh++
		}
	})
	require.LessOrEqual(t, fresh, 4, "of %d chunks", len(known))
}

func TestGearChunksAreAboutAMebibyte(t *testing.T) {
	all := cuts(t, splitter(t, Gear), random(18, 64<<20))
	mean := 64 << 20 / len(all)
	require.InDelta(t, 1.2*(1<<20), mean, 300<<10)
}

func TestWhatCannotBeUsedIsRefused(t *testing.T) {
	for name, f := range map[string]func() (Splitter, error){
		"unknown":       func() (Splitter, error) { return New("knife", polynomial, 0) },
		"empty":         func() (Splitter, error) { return New("", polynomial, 0) },
		"reducible":     func() (Splitter, error) { return New(Rabin, polynomial+1, 0) },
		"zero":          func() (Splitter, error) { return New(Rabin, 0, 0) },
		"degree 54":     func() (Splitter, error) { return New(Rabin, 1<<54|1, 0) },
		"odd size":      func() (Splitter, error) { return New(Fixed, polynomial, 1000) },
		"negative size": func() (Splitter, error) { return New(Fixed, polynomial, -ZeroSize) },
		"huge size":     func() (Splitter, error) { return New(Fixed, polynomial, 64<<20) },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f()
			require.Error(t, err)
		})
	}
}

func FuzzEveryByteIsInOneChunk(f *testing.F) {
	f.Add(int64(1), uint32(3<<20), uint32(600<<10), uint32(1<<20))
	f.Add(int64(2), uint32(0), uint32(0), uint32(1))
	f.Fuzz(func(t *testing.T, seed int64, before, zeros, after uint32) {
		data := bytes.Join([][]byte{random(seed, int(before%(6<<20))), make([]byte, zeros%(3<<20)), random(seed+1, int(after%(2<<20)))}, nil)
		for _, kind := range kinds {
			total := 0
			for _, c := range cuts(t, splitter(t, kind), data) {
				total += c.Length
			}
			require.Equal(t, len(data), total)
		}
	})
}

func benchmark(b *testing.B, kind Kind) {
	data := random(19, 32<<20)
	s := splitter(b, kind)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		cuts(b, s, data)
	}
}

func BenchmarkGear(b *testing.B)  { benchmark(b, Gear) }
func BenchmarkRabin(b *testing.B) { benchmark(b, Rabin) }
func BenchmarkFixed(b *testing.B) { benchmark(b, Fixed) }
