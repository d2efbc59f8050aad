// Command pvcbackup is the data tool: it runs in mover Pods, and people run it with nothing but a bucket and a key.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // keep rules count days in zones that an image without a system may not have

	_ "golang.org/x/crypto/x509roots/fallback" // and neither may it have certificates of authorities
	"golang.org/x/term"

	"example.com/pvcbackup/backup/cli"
	"example.com/pvcbackup/blobstore/drivers/all"
)

// version is set by the linker; without it the module's is used.
var version string

func main() {
	os.Exit(run())
}

func run() int {
	container := containerMemory(os.ReadFile)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// The first signal ends the work in good order, the second one ends the process.
	context.AfterFunc(ctx, stop)
	return cli.Run(ctx, os.Args[1:], cli.Options{
		Openers: all.Openers(), Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
		Memory: container, LimitMemory: runtimeLimit(os.Getenv, container),
		Version: programVersion(), Terminal: term.IsTerminal(int(os.Stderr.Fd())),
	})
}

func programVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && version == "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return version
}
