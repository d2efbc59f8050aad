// Command mover is the data tool with the one driver that this operator needs. Its image is what movers run.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"example.com/pvcbackup/backup/cli"
	"example.com/pvcbackup/blobstore/drivers/s3"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:], cli.Options{
		Openers: s3.Openers(), Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
	})
	stop()
	os.Exit(code)
}
