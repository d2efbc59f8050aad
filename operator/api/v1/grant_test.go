package v1_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	v1 "example.com/pvcbackup/operator/api/v1"
)

func TestABackupIsRestorableToTheNamespacesThatItsAnnotationLists(t *testing.T) {
	for grant, want := range map[string]bool{
		"": false, "team": true, "a,team": true, " a , team ": true, "teams": false, "tea": false, "*": true, "a, *": true, "a*": false, ",": false,
	} {
		obj := &v1.PVCBackup{}
		obj.Annotations = map[string]string{v1.AnnotationRestoreTo: grant}
		require.Equal(t, want, obj.RestorableTo("team"), "%q", grant)
	}
	require.False(t, (&v1.PVCBackup{}).RestorableTo("team"))
	listsNothing := &v1.PVCBackup{}
	listsNothing.Annotations = map[string]string{v1.AnnotationRestoreTo: "a,,b"}
	require.False(t, listsNothing.RestorableTo(""))
}
