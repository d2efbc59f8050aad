// Command portable is the data tool with stores that can do no more than gocloud's portable interface: what the drivers
// of blobstore add to it is taken away, and files are kept by gocloud's own driver. The benchmark measures it to show
// what the project costs in any bucket that gocloud opens. It is for measuring only: gocloud's driver does not sync.
package main

import (
	"context"
	"net/url"
	"os"

	"gocloud.dev/blob/fileblob"

	"example.com/pvcbackup/backup/cli"
	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/drivers/s3"
)

func main() {
	openers := map[string]blobstore.Opener{"file": openFiles, "s3": stripped(s3.Openers()["s3"])}
	os.Exit(cli.Run(context.Background(), os.Args[1:], cli.Options{
		Openers: openers, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
	}))
}

func openFiles(_ context.Context, u *url.URL, _ *blobstore.Options) (*blobstore.Driver, error) {
	bucket, err := fileblob.OpenBucket(u.Path, &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		return nil, err
	}
	return &blobstore.Driver{Bucket: bucket}, nil
}

// stripped leaves nothing of a driver but its bucket and the names of its errors.
func stripped(open blobstore.Opener) blobstore.Opener {
	return func(ctx context.Context, u *url.URL, o *blobstore.Options) (*blobstore.Driver, error) {
		d, err := open(ctx, u, o)
		if err != nil {
			return nil, err
		}
		return &blobstore.Driver{Bucket: d.Bucket, Prefix: d.Prefix, Classify: d.Classify, Close: d.Close}, nil
	}
}
