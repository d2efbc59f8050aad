package kittest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/pvcbackup/reconcilekit/kittest"
)

func TestFakeClientGivesWhatIsCreatedAUID(t *testing.T) {
	c := kittest.FakeClient(scheme)
	first, second, again := newWidget(), newWidget(), newWidget()
	second.Name = "other"
	require.NoError(t, c.Create(t.Context(), first))
	require.NoError(t, c.Create(t.Context(), second))
	require.NotEmpty(t, first.UID)
	require.NotEqual(t, first.UID, second.UID)
	require.True(t, apierrors.IsAlreadyExists(c.Create(t.Context(), again)))
	require.Empty(t, again.UID)
}
