package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
)

// DefaultClassAnnotation on a VolumeSnapshotClass, when "true", makes it the
// default of its driver.
const DefaultClassAnnotation = "snapshot.storage.kubernetes.io/is-default-class"

// Class is a VolumeSnapshotClass that was chosen.
type Class struct {
	Name, Driver string
	// Retain says that deleting a VolumeSnapshot of this class leaves the
	// snapshot in the storage: every run would leak one.
	Retain bool
	// Why it was chosen, for messages: "explicit", "default" or "only".
	Why string
}

// ClassError says why no VolumeSnapshotClass was chosen. Its Kind is
// ErrClassMissing, ErrClassAmbiguous or ErrClassMismatch.
type ClassError struct {
	*Kind
	// Driver is the one of the volume.
	Driver string
	// Explicit is the class asked for; may be empty.
	Explicit string
	// Candidates are the names of the driver's classes, sorted.
	Candidates []string
	problem    string
}

// Error implements error.
func (e *ClassError) Error() string {
	candidates := "none"
	if len(e.Candidates) > 0 {
		candidates = strings.Join(e.Candidates, ", ")
	}
	return fmt.Sprintf("%s; classes of driver %q: %s", e.problem, e.Driver, candidates)
}

// Unwrap returns the Kind.
func (e *ClassError) Unwrap() error { return e.Kind }

// ChooseClass chooses among the cluster's classes, see Choose.
func (c *Client) ChooseClass(ctx context.Context, driver, explicit string) (Class, error) {
	var list snapshotv1.VolumeSnapshotClassList
	if err := c.calls.List(ctx, &list); err != nil {
		return Class{}, APIError("list", "VolumeSnapshotClasses", err)
	}
	return Choose(list.Items, driver, explicit)
}

// Choose chooses the class for a volume of the driver that its
// PersistentVolume names (spec.csi.driver; a StorageClass's provisioner may
// have another name): the explicit one, else the one annotated as default, else
// the only one. It never guesses: everything else is a ClassError.
func Choose(classes []snapshotv1.VolumeSnapshotClass, driver, explicit string) (Class, error) {
	ours, defaults := forDriver(classes, driver)
	fail := func(kind *Kind, format string, args ...any) (Class, error) {
		return Class{}, &ClassError{Kind: kind, Driver: driver, Explicit: explicit,
			Candidates: namesOf(ours), problem: fmt.Sprintf(format, args...)}
	}
	switch {
	case explicit != "":
		i := slices.IndexFunc(classes, func(c snapshotv1.VolumeSnapshotClass) bool { return c.Name == explicit })
		if i < 0 {
			return fail(ErrClassMissing, "there is no VolumeSnapshotClass %q; create it, or name another", explicit)
		}
		if classes[i].Driver != driver {
			return fail(ErrClassMismatch, "VolumeSnapshotClass %q is of driver %q; name one of the volume's driver", explicit, classes[i].Driver)
		}
		return chosen(classes[i], "explicit"), nil
	case len(defaults) == 1:
		return chosen(defaults[0], "default"), nil
	case len(defaults) > 1:
		return fail(ErrClassAmbiguous, "%d VolumeSnapshotClasses are annotated as default (%s); name one, or leave one annotation",
			len(defaults), strings.Join(namesOf(defaults), ", "))
	case len(ours) == 1:
		return chosen(ours[0], "only"), nil
	case len(ours) > 1:
		return fail(ErrClassAmbiguous, "%d VolumeSnapshotClasses fit and none is annotated as default; name one", len(ours))
	default:
		return fail(ErrClassMissing, "there is no VolumeSnapshotClass for the volume's driver; create one")
	}
}

func chosen(c snapshotv1.VolumeSnapshotClass, why string) Class {
	return Class{Name: c.Name, Driver: c.Driver, Retain: c.DeletionPolicy == snapshotv1.VolumeSnapshotContentRetain, Why: why}
}

func forDriver(classes []snapshotv1.VolumeSnapshotClass, driver string) (ours, defaults []snapshotv1.VolumeSnapshotClass) {
	for _, c := range classes {
		if c.Driver != driver {
			continue
		}
		ours = append(ours, c)
		if c.Annotations[DefaultClassAnnotation] == "true" {
			defaults = append(defaults, c)
		}
	}
	return ours, defaults
}

func namesOf(classes []snapshotv1.VolumeSnapshotClass) []string {
	var names []string
	for _, c := range classes {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}
