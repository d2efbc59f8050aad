package app_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// bounds are the most requests that one run may make of the API server, by verb. What is written is the same in every
// run; reads grow with the events that come in between, which are more on a busy machine: 33 and 13 on one at rest.
var bounds = map[string]int{"create": 4, "patch": 18, "delete": 3, "get": 80, "list": 35, "update": 0, "watch": 0}

// It is not parallel, so that nobody else makes requests.
func TestARunTakesNoMoreRequestsThanItsBound(t *testing.T) {
	p := newPlace(t)
	p.write(p.claim("data"), "file", "text")
	obj := p.backup("data", "data")
	p.backedUp(obj, "")
	p.settled()
	before := p.calls.snapshot()
	p.backedUp(obj, p.again(obj))
	p.settled()

	byVerb, made := map[string]int{}, map[call]int{}
	for c, n := range p.calls.snapshot() {
		if n -= before[c]; n > 0 {
			byVerb[c.verb] += n
			made[c] = n
		}
	}
	for _, c := range sorted(made) {
		t.Logf("%3d %s", made[c], c)
	}
	t.Logf("in all: %v", byVerb)
	for verb, n := range byVerb {
		require.LessOrEqual(t, n, bounds[verb], "%s: %v", verb, made)
	}
}
