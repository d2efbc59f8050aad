package blockdev

import (
	"net/url"
	"strconv"
	"strings"

	"example.com/pvcbackup/backup/archiver"
)

// Read says what a run read of the volume.
type Read string

// The types of runs.
const (
	// ReadFull: everything, but for the holes of an image.
	ReadFull Read = "full"
	// ReadChanged: what a Delta touches. The rest was taken over from the parent.
	ReadChanged Read = "changed"
	// ReadAllocated: what is Allocated. The rest was taken to be zeros.
	ReadAllocated Read = "allocated"
)

// Reason says why the parent was not used, or the changes were not. It is a word for conditions; empty when everything
// was used that was offered.
type Reason string

// The reasons.
const (
	// NoParent: there is no snapshot of this volume to compare with.
	NoParent Reason = "NoParent"
	// ParentUnreadable: the parent's tree is damaged, missing, or not that of a volume.
	ParentUnreadable Reason = "ParentUnreadable"
	// ParentIncomplete: chunks of the parent are not in the index.
	ParentIncomplete Reason = "ParentIncomplete"
	// ChunkSizeChanged: the parent is cut differently.
	ChunkSizeChanged Reason = "ChunkSizeChanged"
	// VolumeChanged: the parent is of another volume.
	VolumeChanged Reason = "VolumeChanged"
	// VolumeShrunk: the parent is larger than the volume.
	VolumeShrunk Reason = "VolumeShrunk"
	// NoHandle: the parent does not say which state of the volume it holds.
	NoHandle Reason = "NoHandle"
	// FullDue: a full read is due, see Options.FullEvery.
	FullDue Reason = "FullDue"
	// ChangesUnavailable: the source of changes had none, or failed.
	ChangesUnavailable Reason = "ChangesUnavailable"
	// ChangesInvalid: the list of changes contradicts itself or the volume.
	ChangesInvalid Reason = "ChangesInvalid"
	// WrongBase: the changes are relative to another state than the parent's.
	WrongBase Reason = "WrongBase"
	// SampleMismatch: a chunk that did not change, as the changes have it, did. They, or the parent, are not to be
	// trusted.
	SampleMismatch Reason = "SampleMismatch"
)

const (
	tagChunk  = archiver.TagBlockPrefix + "chunk="
	tagSize   = archiver.TagBlockPrefix + "size="
	tagRead   = archiver.TagBlockPrefix + "read="
	tagReason = archiver.TagBlockPrefix + "reason="
	tagHandle = archiver.TagBlockPrefix + "handle="
	tagVolume = archiver.TagBlockPrefix + "volume="
	tagRuns   = archiver.TagBlockPrefix + "runs="
)

// Info is what the tags of a volume's snapshot say.
type Info struct {
	// ChunkSize and Size are in bytes.
	ChunkSize, Size int64
	// Read and Reason are of the run that made it.
	Read   Read
	Reason Reason
	// Handle and Volume are those of Options.
	Handle, Volume string
	// SinceFull counts the runs since the last one that read everything; 0 for that one.
	SinceFull int
}

// InfoOf reads the tags of a snapshot, and reports whether it is one of a volume.
func InfoOf(tags []string) (Info, bool) {
	var i Info
	for _, t := range tags {
		switch key, value, _ := strings.Cut(t, "="); key + "=" {
		case tagChunk:
			i.ChunkSize = number(value)
		case tagSize:
			i.Size = number(value)
		case tagRead:
			i.Read = Read(value)
		case tagReason:
			i.Reason = Reason(value)
		case tagHandle:
			i.Handle = unescape(value)
		case tagVolume:
			i.Volume = unescape(value)
		case tagRuns:
			i.SinceFull = int(number(value))
		}
	}
	if i.ChunkSize <= 0 || i.ChunkSize > maxChunk || i.Size <= 0 || i.SinceFull < 0 {
		return Info{}, false
	}
	return i, true
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// unescape returns what no handle is for what escape did not write.
func unescape(text string) string {
	plain, err := url.QueryUnescape(text)
	if err != nil {
		return ""
	}
	return plain
}

func (i *Info) tags() []string {
	tags := []string{
		tagChunk + strconv.FormatInt(i.ChunkSize, 10), tagSize + strconv.FormatInt(i.Size, 10), tagRead + string(i.Read),
		tagRuns + strconv.Itoa(i.SinceFull),
	}
	if i.Reason != "" {
		tags = append(tags, tagReason+string(i.Reason))
	}
	// Tags must not have commas, and handles may have anything.
	if i.Handle != "" {
		tags = append(tags, tagHandle+url.QueryEscape(i.Handle))
	}
	if i.Volume != "" {
		tags = append(tags, tagVolume+url.QueryEscape(i.Volume))
	}
	return tags
}

// usable says which snapshots can be parents.
func usable(tags []string) bool {
	_, ok := InfoOf(tags)
	return ok && archiver.Complete(tags)
}
