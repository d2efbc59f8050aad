package scheduled

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"example.com/pvcbackup/schedule"
	"example.com/pvcbackup/snapshot"
)

// thing is a kind with scheduled backups. It is served by the definition of the reference operator's PVCBackup.
type thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   thingSpec `json:"spec"`
	Status Status    `json:"status,omitempty"`
}

type thingSpec struct {
	PVCName string `json:"pvcName"`
	Spec    `json:",inline"`
}

type thingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []thing `json:"items"`
}

func (t *thing) DeepCopyObject() runtime.Object {
	out := &thing{TypeMeta: t.TypeMeta, ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: thingSpec{PVCName: t.Spec.PVCName, Spec: *t.Spec.DeepCopy()}}
	t.Status.DeepCopyInto(&out.Status)
	return out
}

func (l *thingList) DeepCopyObject() runtime.Object {
	out := &thingList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*thing))
	}
	return out
}

func (t *thing) BackupClaim() string                    { return t.Spec.PVCName }
func (t *thing) BackupSpec() *Spec                      { return &t.Spec.Spec }
func (t *thing) BackupStatus() *Status                  { return &t.Status }
func (t *thing) GetConditions() []metav1.Condition      { return t.Status.Conditions }
func (t *thing) SetConditions(c []metav1.Condition)     { t.Status.Conditions = c }
func (t *thing) GetObservedGeneration() int64           { return t.Status.ObservedGeneration }
func (t *thing) SetObservedGeneration(generation int64) { t.Status.ObservedGeneration = generation }

var _ Object = (*thing)(nil)

func testScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(snapshot.AddToScheme(s))
	gv := schema.GroupVersion{Group: "storage.example.com", Version: "v1"}
	s.AddKnownTypeWithName(gv.WithKind("PVCBackup"), &thing{})
	s.AddKnownTypeWithName(gv.WithKind("PVCBackupList"), &thingList{})
	metav1.AddToGroupVersion(s, gv)
	return s
}

// noon is the present of tests that need one.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(d)} }

func mustCompile(cron string) *schedule.Schedule {
	compiled, err := schedule.Spec{Cron: cron}.Compile("seed")
	utilruntime.Must(err)
	return compiled
}
