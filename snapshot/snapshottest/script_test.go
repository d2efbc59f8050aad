package snapshottest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestScript(t *testing.T) {
	for name, tc := range map[string]struct {
		script Script
		at     time.Duration
		want   scene
	}{
		"zero is ready at once": {Script{}, 0, scene{bound: true, taken: true, ready: true}},
		"not taken yet":         {Script{Taken: 2}, 1, scene{bound: true, takenAfter: 2}},
		"taken, not ready yet":  {Script{Taken: 2, Ready: 2}, 3, scene{bound: true, taken: true, takenAfter: 2}},
		"ready":                 {Script{Taken: 2, Ready: 2}, 4, scene{bound: true, taken: true, ready: true, takenAfter: 2}},
		"never taken":           {Script{NeverTaken: true}, time.Hour, scene{bound: true}},
		"never ready":           {Script{NeverReady: true}, time.Hour, scene{bound: true, taken: true}},
		"never bound":           {Script{NeverBound: true}, time.Hour, scene{}},
		"error for good":        {Script{Error: "e"}, time.Hour, scene{bound: true, failure: "e"}},
		"error for a while":     {Script{Error: "e", ErrorFor: 5}, 4, scene{bound: true, failure: "e"}},
		"then as scripted":      {Script{Error: "e", ErrorFor: 5, Taken: 2, Ready: 1}, 7, scene{bound: true, taken: true, takenAfter: 7}},
		"then ready":            {Script{Error: "e", ErrorFor: 5, Taken: 2, Ready: 1}, 8, scene{bound: true, taken: true, ready: true, takenAfter: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, tc.script.at(tc.at), cmp.AllowUnexported(scene{})); d != "" {
				t.Fatal(d)
			}
		})
	}
}
