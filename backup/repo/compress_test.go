package repo

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func randomContent(size int) []byte {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(content)
	return content
}

// letters are bytes of which some are more frequent than others, and that never repeat for long.
func letters(size int) []byte {
	content := randomContent(size)
	for i, c := range content {
		content[i] = 'a' + c%16
	}
	return content
}

func TestWhatIsWorthCompressingIsCompressed(t *testing.T) {
	s := newScratch(newCodec(), CompressFastest)
	for _, size := range []int{300, 3 << 10, 100 << 10, 1 << 20} {
		record := randomContent(100)
		for name, tc := range map[string]struct {
			content []byte
			most    float64 // of its size
		}{
			"random":               {randomContent(size), 1},
			"letters":              {letters(size), 0.6},
			"zeros":                {make([]byte, size), 0.1},
			"a random record":      {bytes.Repeat(record, size/len(record)), 0.5},
			"random, then letters": {append(randomContent(size/2), letters(size/2)...), 0.9},
			"lines of a log":       {stageContent("text", size), 0.45},
		} {
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				stored, plainLength, err := s.encode(DataBlob, tc.content, CompressFastest, true)
				require.NoError(t, err)
				if tc.most == 1 {
					require.Zero(t, plainLength)
					return
				}
				if plainLength == 0 && size < 1000 {
					return // too little to gain
				}
				require.EqualValues(t, len(tc.content), plainLength)
				require.Less(t, float64(len(stored)), tc.most*float64(len(tc.content)))
			})
		}
	}
}

func TestRandomBytesLookEvenAndOthersDoNot(t *testing.T) {
	random := randomContent(1 << 20)
	for n := 1; n <= 20_000; n += 37 {
		require.True(t, even(random[:n]), "%d random bytes", n)
	}
	for _, n := range []int{64, 1000, 5000, 100_000} {
		require.False(t, even(letters(n)), "%d letters", n)
	}
}
