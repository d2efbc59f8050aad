package contract

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestRequestRoundTrip(t *testing.T) {
	want := Request{
		Version: Version, Operation: OperationBackup,
		Identity: Identity{Host: "cluster", Path: "/ns/data"}, Locks: Locks{Owner: "uid", Live: []string{"job-1"}},
		Backup: &Backup{Run: "uid-20260102t030405z-scheduled", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Tags: []string{"a=b"}},
	}
	text, err := want.Encode()
	require.NoError(t, err)
	got, err := DecodeRequest(text)
	require.NoError(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDecodeRequestRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":           {"", "does not hold a request"},
		"another version":   {`{"version":2,"operation":"lookup"}`, "use the mover image of the operator's release"},
		"unknown operation": {`{"version":1,"operation":"format"}`, `operation "format" is not known`},
		"a missing part":    {`{"version":1,"operation":"restore"}`, "lacks its part"},
		"a run with no name": {`{"version":1,"operation":"backup","backup":{}}`,
			"lacks the name of its run"},
		"a delete for nobody": {`{"version":1,"operation":"delete","delete":{}}`, "lacks the owner's UID"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeRequest(tc.text)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestLocksDeadOnlyForPodsOfTheOwnerThatEnded(t *testing.T) {
	locks := Locks{Owner: "uid-1", AsOf: 1000, Live: []string{"data-abc-2"}}
	earlier, later := Locks{Owner: "uid-1", AsOf: 999}, Locks{Owner: "uid-1", AsOf: 1001}
	for host, want := range map[string]bool{
		earlier.HostName("data-abc-1-xyz", "pod-uid"):                           true,
		earlier.HostName("data-abc-2-xyz", "pod-uid"):                           false, // it may still run
		locks.HostName("data-abc-1-xyz", "pod-uid"):                             false, // our own, or of the same moment
		later.HostName("data-abc-3-xyz", "pod-uid"):                             false, // started after the operator looked
		Locks{Owner: "uid-2", AsOf: 999}.HostName("data-abc-1-xyz", "pod-uid"):  false,
		Locks{Owner: "uid-11", AsOf: 999}.HostName("data-abc-1-xyz", "pod-uid"): false,
		"uid-1/then/data-abc-1-xyz/pod-uid":                                     false,
		"uid-1/data-abc-1-xyz/pod-uid":                                          false,
		"somebody's laptop":                                                     false,
		"":                                                                      false,
	} {
		if got := locks.Dead(host); got != want {
			t.Errorf("Dead(%q) = %v", host, got)
		}
	}
	if (Locks{AsOf: 1}).Dead("/0/pod/uid") {
		t.Error("without an owner a lock was taken for dead")
	}
}

func TestResultRoundTrip(t *testing.T) {
	want := Result{
		Version: Version, Operation: OperationBackup, Outcome: Succeeded, RepositoryID: "r", SnapshotID: "s",
		SnapshotTime: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Bytes: 1, Files: 2, Added: 3, Seconds: 0.5, PathCount: 1,
		Paths: []string{"a"}, Notes: []string{"b"},
	}
	got, err := DecodeResult(string(want.Encode()))
	require.NoError(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestResultLargerThanTheLimitStillParses(t *testing.T) {
	long := strings.Repeat("é\n", 3000)
	paths := make([]string, 5000)
	for i := range paths {
		paths[i] = "folder/\xff\"\\" + long[:200]
	}
	for name, r := range map[string]Result{
		"paths":   {Outcome: Failed, Reason: ReasonCannotRead, Paths: paths},
		"message": {Outcome: Failed, Reason: ReasonInternal, Message: long},
		"notes":   {Outcome: Succeeded, Notes: paths},
		"all":     {Outcome: Partial, Message: long, Notes: paths, Paths: paths},
	} {
		t.Run(name, func(t *testing.T) {
			text := r.Encode()
			if len(text) > MaxResult {
				t.Fatalf("%d bytes", len(text))
			}
			got, err := DecodeResult(string(text))
			require.NoError(t, err)
			if got.Outcome != r.Outcome || got.Reason != r.Reason || len(r.Paths) > 0 && got.PathCount != len(paths) {
				t.Errorf("got outcome %s, reason %s, %d paths", got.Outcome, got.Reason, got.PathCount)
			}
		})
	}
}

func TestResultThatCannotFitIsAFailure(t *testing.T) {
	got, err := DecodeResult(string(Result{Outcome: Succeeded, SnapshotID: strings.Repeat("f", 2*MaxResult)}.Encode()))
	require.NoError(t, err)
	if diff := cmp.Diff(Failed, got.Outcome); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestUnknownIsNotSuccess(t *testing.T) {
	for _, message := range []string{"", " \n", "killed", `{"outcome":"Succeeded"}`, `{"version":1}`, `{"version":1,"outcome":"Fine"}`,
		`{"version":1,"outcome":"Succeeded","by`} {
		if _, err := DecodeResult(message); !errors.Is(err, ErrNoResult) {
			t.Errorf("DecodeResult(%q): %v", message, err)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for want, r := range map[int]Result{
		ExitOK:            {Outcome: Empty},
		ExitPartial:       {Outcome: Partial},
		ExitFailed:        {Outcome: Failed, Reason: ReasonInternal},
		ExitUsage:         {Outcome: Failed, Reason: ReasonInvalidRequest},
		ExitNoRepository:  {Outcome: Failed, Reason: ReasonRepositoryMissing},
		ExitLocked:        {Outcome: Failed, Reason: ReasonLocked},
		ExitWrongPassword: {Outcome: Failed, Reason: ReasonWrongPassword},
	} {
		if got := r.ExitCode(); got != want {
			t.Errorf("%v: exit code %d, want %d", r, got, want)
		}
	}
}

func TestProgressLine(t *testing.T) {
	want := Progress{Stage: "reading", Bytes: 1, TotalBytes: 2, Files: 3, Rate: 4, ETA: 5}
	got, ok := ParseProgress(want.Line() + "\n")
	require.True(t, ok)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, line := range []string{"", "reading", `{"progress":`, `{"other":1}`} {
		if _, ok := ParseProgress(line); ok {
			t.Errorf("ParseProgress(%q) found progress", line)
		}
	}
}

func FuzzParseProgress(f *testing.F) {
	f.Add(Progress{Stage: "reading", Bytes: 1, ETA: 5}.Line())
	f.Add(`{"progress":{"bytes":-1}}`)
	f.Add(`{"progress":`)
	f.Fuzz(func(t *testing.T, line string) {
		progress, ok := ParseProgress(line)
		if !ok {
			return
		}
		if again, ok := ParseProgress(progress.Line()); !ok || again != progress {
			t.Fatalf("%+v became %+v", progress, again)
		}
	})
}

func FuzzOnlyLocksOfAnEarlierMoverOfTheSameOwnerAreDead(f *testing.F) {
	f.Add("uid", int64(2), "job-1", "uid/1/job-2-x/y")
	f.Add("", int64(0), "", "")
	f.Add("a/b", int64(9), "x", "a/b/1/x-1/u")
	f.Fuzz(func(t *testing.T, owner string, asOf int64, live, host string) {
		locks := Locks{Owner: owner, AsOf: asOf, Live: []string{live}}
		if locks.Dead(locks.HostName(live+"-pod", "uid")) {
			t.Fatal("a mover would take its own lock for dead")
		}
		if locks.Dead(host) && (owner == "" || !strings.HasPrefix(host, owner+"/")) {
			t.Fatalf("the lock of %q is not one of %q", host, owner)
		}
	})
}

func FuzzDecodeResult(f *testing.F) {
	f.Add(string(Result{Outcome: Failed, Message: "m"}.Encode()))
	f.Add("{}")
	f.Fuzz(func(t *testing.T, message string) {
		r, err := DecodeResult(message)
		if err == nil && !json.Valid(r.Encode()) {
			t.Fatal("a decoded result does not encode")
		}
	})
}

func FuzzDecodeRequest(f *testing.F) {
	f.Add(`{"version":1,"operation":"lookup"}`)
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := DecodeRequest(text); err == nil {
			if _, err := r.Encode(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
