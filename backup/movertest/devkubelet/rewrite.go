package devkubelet

import "strings"

// paths are the local paths of places in a container's file system.
type paths map[string]string

// rewrite returns text with the place that it is, or begins with, replaced by its local path; also behind file://.
// The longest place wins.
func (p paths) rewrite(text string) string {
	scheme := ""
	if rest, ok := strings.CutPrefix(text, "file://"); ok {
		scheme, text = "file://", rest
	}
	best := ""
	for place := range p {
		if len(place) > len(best) && below(text, place) {
			best = place
		}
	}
	if best == "" {
		return scheme + text
	}
	return scheme + p[best] + text[len(best):]
}

func below(text, place string) bool {
	rest, ok := strings.CutPrefix(text, place)
	return ok && (rest == "" || strings.ContainsRune("/?#", rune(rest[0])))
}

func (p paths) rewriteAll(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = p.rewrite(text)
	}
	return out
}
