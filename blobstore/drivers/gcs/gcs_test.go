package gcs

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/blobtest"
)

func TestConformance(t *testing.T) {
	server := blobtest.StartGCS(t)
	var n atomic.Int32
	blobtest.Run(t, func(t testing.TB) blobtest.Store {
		url := fmt.Sprintf("%s/folder/%d", server.URL, n.Add(1))
		s, err := blobstore.Open(t.Context(), url, &blobstore.Options{Openers: Openers()})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}, blobtest.Caps{})
}
