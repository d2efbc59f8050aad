package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// print writes a value as indented JSON.
func (t *tool) print(value any) error {
	encoder := json.NewEncoder(t.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// show writes a value as JSON if that was asked for, else what human writes.
func (t *tool) show(value any, human func(io.Writer)) error {
	if t.json {
		return t.print(value)
	}
	human(t.Stdout)
	return nil
}

// say writes a line for people who did not ask for JSON.
func (t *tool) say(format string, args ...any) {
	if !t.json {
		fmt.Fprintf(t.Stdout, format+"\n", args...)
	}
}

// warn writes what is not as it should be, and does not stop the command.
func (t *tool) warn(format string, args ...any) {
	fmt.Fprintf(t.Stderr, "warning: "+format+"\n", args...)
}

// table writes aligned columns.
func table(w io.Writer, header []string, rows [][]string) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			row[i] = printable(cell)
		}
		fmt.Fprintln(tab, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	tab.Flush()
}

// printable keeps what others wrote into a repository from moving the cursor of a terminal.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if c == unicode.ReplacementChar || !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, text)
}

// count writes a number with its noun: "1 file", "2 files".
func count[N int | int64 | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// size writes a number of bytes for people.
func size[N int64 | uint64](n N) string {
	value, unit := float64(n), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < 1024 && value > -1024 {
			break
		}
		value, unit = value/1024, next
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}

// parseSize reads a number of bytes, with K, M, G or T for the powers of 1024. An empty text is 0.
func parseSize(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	number, unit := text, int64(1)
	for i, letter := range "KMGT" {
		if rest, found := strings.CutSuffix(strings.ToUpper(text), string(letter)); found {
			number, unit = rest, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%.50q is not a size such as 500M or 20G", text)
	}
	return n * unit, nil
}

// stamp writes a time for people, in UTC.
func stamp(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05") }
