package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "csidriver: %v\n", err)
		os.Exit(1)
	}
}

// run serves until ctx is done.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("csidriver", flag.ExitOnError)
	root := flags.String("root", "", "directory for volumes, snapshots and control.json; made when missing (required)")
	socket := flags.String("socket", "", "unix socket to serve on (required)")
	name := flags.String("driver-name", "csi.pvcbackup.example.com", "name of the driver")
	backend := flags.String("backend", "copy", "what volumes are made of: copy")
	node := flags.String("node-id", hostname(), "name of this node")
	topology := flags.Bool("topology", false, "say that volumes are reachable from this node only")
	_ = flags.Parse(args) // ExitOnError
	if *root == "" || *socket == "" {
		return errors.New("--root and --socket are required")
	}
	backends := map[string]Backend{"copy": copyBackend{}}
	chosen, known := backends[*backend]
	if !known {
		return fmt.Errorf("--backend is %q; it must be copy", *backend)
	}
	store, err := openStore(*root, chosen)
	if err != nil {
		return err
	}
	defer store.close()
	return serve(ctx, *socket, &driver{name: *name, node: *node, topology: *topology, store: store, backend: chosen})
}

// serve answers calls on a unix socket until ctx is done, and then finishes those under way.
func serve(ctx context.Context, socket string, d *driver) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the socket an earlier driver left: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("listening on --socket %q: %w", socket, err)
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(logged, d.faulty))
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	csi.RegisterNodeServer(server, d)
	stopped := context.AfterFunc(ctx, server.GracefulStop)
	defer stopped()
	slog.Info("serving", "driver", d.name, "socket", socket, "root", d.store.root)
	return server.Serve(listener)
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}
