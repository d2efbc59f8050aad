package s3

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/blobtest"
)

// fresh opens stores in buckets of their own.
func fresh(server *blobtest.S3) func(t testing.TB) *blobstore.Store {
	var n atomic.Int32
	return func(t testing.TB) *blobstore.Store {
		url, err := server.BucketURL(fmt.Sprintf("test-%d", n.Add(1)))
		require.NoError(t, err)
		s, err := blobstore.Open(t.Context(), url+"&prefix=a/folder", &blobstore.Options{Openers: Openers()})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
}

func TestConformance(t *testing.T) {
	server := blobtest.StartS3(t)
	open := fresh(server)
	caps := blobtest.Caps{NoFolderAndFile: true, DeleteIsSilent: true, Secrets: []string{server.AccessKey, server.SecretKey}}
	blobtest.Run(t, func(t testing.TB) blobtest.Store { return open(t) }, caps)
}
