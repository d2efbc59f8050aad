package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"

	"github.com/robfig/cron/v3"
)

// starBit is set by the cron parser in a field that is left open.
const starBit = uint64(1) << 63

// field describes one of the five.
type field struct {
	name      string
	low, high int
	hashHigh  int // the highest value that H alone may take: days 29 to 31 do not exist in every month
}

var fieldsInOrder = [5]field{
	{"minute", 0, 59, 59},
	{"hour", 0, 23, 23},
	{"day of month", 1, 31, 28},
	{"month", 1, 12, 12},
	{"day of week", 0, 6, 6},
}

var (
	// The parser takes more than these: "*-5" for "*", an empty list element for nothing, signs.
	plainElement  = regexp.MustCompile(`^(?:[*?]|[0-9A-Za-z]+(?:-[0-9A-Za-z]+)?)(?:/([0-9]+))?$`)
	hashedElement = regexp.MustCompile(`^H(?:\(([0-9A-Za-z]+-[0-9A-Za-z]+)\))?(?:/([0-9]+))?$`)
)

// parseField returns the values of the i-th field as a bit set, with starBit if it is left open.
func parseField(i int, text, seed string) (uint64, error) {
	var set uint64
	for element := range strings.SplitSeq(text, ",") {
		one, err := parseElement(i, element, seed)
		if err != nil {
			return 0, fmt.Errorf("%s %q: %w", fieldsInOrder[i].name, element, err)
		}
		set |= one
	}
	return set, nil
}

func parseElement(i int, element, seed string) (uint64, error) {
	f := fieldsInOrder[i]
	if m := hashedElement.FindStringSubmatch(element); m != nil {
		return hashedValues(i, m[1], m[2], seed)
	}
	m := plainElement.FindStringSubmatch(element)
	switch {
	case m == nil:
		return 0, errors.New("write *, a value, a-b, any of them with /n, or H, H(a-b), H/n, H(a-b)/n")
	case f.name == "day of week" && (element == "7" || strings.HasSuffix(element, "-7")):
		return 0, errors.New("write 0 or SUN for Sunday")
	}
	if _, err := f.step(m[1]); err != nil {
		return 0, err
	}
	return parseCron(i, element)
}

// parseCron asks the cron parser about one field, with the others left open.
func parseCron(i int, text string) (uint64, error) {
	all := [5]string{"*", "*", "*", "*", "*"}
	all[i] = text
	parsed, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(strings.Join(all[:], " "))
	if err != nil {
		return 0, err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return 0, fmt.Errorf("parsed as %T", parsed)
	}
	return [5]uint64{spec.Minute, spec.Hour, spec.Dom, spec.Month, spec.Dow}[i], nil
}

// step reads what follows the slash; 0 means that there was none. A step beyond the field, such as */90 for minutes,
// would fire as if it were not there.
func (f field) step(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if width := f.high - f.low + 1; err != nil || n < 1 || n > width {
		return 0, fmt.Errorf("a step must be between 1 and %d", width)
	}
	return n, nil
}

// hashedValues resolves H(within)/step.
func hashedValues(i int, within, step, seed string) (uint64, error) {
	f := fieldsInOrder[i]
	low, high := f.low, f.hashHigh
	if within != "" {
		set, err := parseCron(i, within)
		if err != nil {
			return 0, err
		}
		low, high = bits.TrailingZeros64(set), bits.Len64(set)-1
	}
	n, err := f.step(step)
	if err != nil {
		return 0, err
	}
	width := high - low + 1
	if n == 0 {
		n = width
	}
	first := low + int(hash(seed, f.name)%uint64(min(n, width)))
	var set uint64
	for v := first; v <= high; v += n {
		set |= 1 << v
	}
	return set, nil
}

// hash spreads a seed evenly. What it returns must never change: it decides when existing objects run.
func hash(seed, what string) uint64 {
	var buf [128]byte
	sum := sha256.Sum256(append(append(append(buf[:0], seed...), 0), what...))
	return binary.BigEndian.Uint64(sum[:])
}
