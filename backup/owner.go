package backup

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/pvcbackup/snapshot"
)

// Owner is the object that runs belong to: a PVCBackup, or any other object that an embedder backs up for.
type Owner struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	UID        types.UID
}

// Reference returns the owner reference that children carry, so that the cluster's garbage collector removes them with
// their owner even when no operator runs. It does not block the owner's deletion.
func (o Owner) Reference() metav1.OwnerReference {
	yes, no := true, false
	return metav1.OwnerReference{
		APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: o.UID, Controller: &yes, BlockOwnerDeletion: &no,
	}
}

// snapshotOwner is the owner as the packages snapshot and stage know it.
func (o Owner) snapshotOwner() snapshot.Owner {
	ref := o.Reference()
	return snapshot.Owner{UID: o.UID, Reference: &ref}
}

// Labels of everything that a run creates.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is LabelManagedBy's value.
	ManagedBy = "pvcbackup"
	// LabelOwnerUID holds the owner's UID.
	LabelOwnerUID = snapshot.OwnerUIDLabel
	// LabelRole says what the child is for: one of the roles.
	LabelRole = "storage.example.com/role"
	// LabelSlot holds the slot's id.
	LabelSlot = "storage.example.com/slot"
	// LabelAttempt counts the tries of one task from 1.
	LabelAttempt = "storage.example.com/attempt"
)

// Labels returns the labels of a child of this owner.
func (o Owner) Labels(role Role, slot string) map[string]string {
	return map[string]string{
		LabelManagedBy: ManagedBy,
		LabelOwnerUID:  string(o.UID),
		LabelRole:      string(role),
		LabelSlot:      slot,
	}
}

// Role is what a child is for.
type Role string

// The roles.
const (
	RoleSnapshot Role = "snapshot"
	RoleStage    Role = "stage"
	RoleLookup   Role = "lookup"
	RoleBackup   Role = "backup"
	RoleRestore  Role = "restore"
	RoleMaintain Role = "maintain"
	RoleDelete   Role = "delete"
)

// ChildName returns the name of a child: the same for the same owner, role, slot and attempt, and different for any
// other. It is a DNS label of at most 47 characters, so that a Job's Pods can add their suffix without being cut.
func (o Owner) ChildName(role Role, slot string, attempt int) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(o.UID), string(role), slot, strconv.Itoa(attempt)}, "\x00")))
	hash := strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:10]))
	readable := dnsLabel(o.Name, 20)
	return readable + "-" + string(role) + "-" + hash
}

// dnsLabel keeps what a DNS label may hold of name, at most n characters of it, and starts with a letter.
func dnsLabel(name string, n int) string {
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		switch {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			b.WriteRune(c)
		default:
			b.WriteByte('-')
		}
	}
	label := b.String()
	label = strings.Trim(label[:min(len(label), n)], "-")
	if label == "" || label[0] < 'a' {
		label = strings.TrimRight(("b-" + label)[:min(len(label)+2, n)], "-")
	}
	return label
}
