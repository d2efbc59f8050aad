package blobtest

import (
	"testing"
)

// Caps declare what a store is known not to promise, so that the limits of a
// driver are visible in its test. The zero value means that it keeps every promise.
type Caps struct {
	// OnlyIfAbsentBestEffort: racing writers may both win.
	OnlyIfAbsentBestEffort bool

	// DeleteIsSilent: deleting a missing object is not reported.
	DeleteIsSilent bool

	// NoFolderAndFile: "a" and "a/b" cannot both exist.
	NoFolderAndFile bool

	// Secrets are texts that must not appear in any error, such as the access key.
	Secrets []string

	// StreamSize is the size in bytes of the object that must take more than one
	// part; 0 means 20 MiB.
	StreamSize int64
}

// Gaps returns what a store with these Caps does instead of keeping a promise, by the names of [Promises]. A promise that
// is not in the map is kept.
func (c Caps) Gaps() map[string]string {
	gaps := map[string]string{}
	if c.OnlyIfAbsentBestEffort {
		gaps["OnlyIfAbsent/Concurrent"] = "best effort"
	}
	if c.DeleteIsSilent {
		gaps["Delete/Missing"] = "silent"
	}
	if c.NoFolderAndFile {
		gaps["Keys/FolderAndFile"] = "refused"
	}
	return gaps
}

// Promises returns the names of the sub-tests of [Run], in their order.
func Promises() []string {
	var names []string
	for _, p := range promises() {
		names = append(names, p.name)
	}
	return names
}

// promise is one sub-test. It gets a fresh, empty store.
type promise struct {
	name  string
	check func(t testing.TB, s Store, c Caps)
}

func promises() []promise {
	return []promise{
		{"Put/ReplacesTheObject", putReplaces},
		{"PutIsAtomic/ReaderFails", readerFails},
		{"PutIsAtomic/ContextEnds", contextEnds},
		{"PutIsAtomic/WrongDigest", wrongDigest},
		{"PutIsAtomic/WrongSize", wrongSize},
		{"PutKeepsOldObject", keepsOldObject},
		{"OnlyIfAbsent/SecondLoses", secondLoses},
		{"OnlyIfAbsent/Concurrent", oneWinner},
		{"GetRange/Exact", rangeExact},
		{"GetRange/PastTheEnd", rangePastTheEnd},
		{"GetBytes/TooLarge", tooLarge},
		{"Stat/SizeAndTime", statTells},
		{"List/Sorted", listSorted},
		{"List/PrefixIsNotAFolder", prefixIsNotAFolder},
		{"List/MoreThanOnePage", moreThanOnePage},
		{"List/StopsWhenAsked", listStops},
		{"Delete/Missing", deleteMissing},
		{"Delete/Gone", deleteGone},
		{"DeleteAll/OnlyBelowThePrefix", deleteAll},
		{"Keys/Unicode", unicodeKeys},
		{"Keys/FolderAndFile", folderAndFile},
		{"Keys/Refused", refusedKeys},
		{"Empty", emptyObject},
		{"LargerThanOnePart", largerThanOnePart},
		{"StalledReader", stalledReader},
		{"NoGoroutineLeft", noGoroutineLeft},
		{"ErrorsAreClassified", errorsAreClassified},
		{"NoSecretsInErrors", noSecretsInErrors},
		{"Probe/TellsWhatWorks", probeTells},
	}
}

// Run checks every promise with a fresh store. open must return an empty store
// each time and close it by t.Cleanup.
func Run(t *testing.T, open func(t testing.TB) Store, caps Caps) {
	t.Helper()
	for _, p := range promises() {
		t.Run(p.name, func(t *testing.T) { p.check(t, open(t), caps) })
	}
}
