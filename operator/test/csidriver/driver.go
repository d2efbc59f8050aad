package main

import (
	"context"
	"log/slog"
	"path"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const version = "1.0.0" // reported to sidecars, which refuse a driver without one

// Backend says what volumes are made of. Directories it is given lie below the store's root and are its alone.
type Backend interface {
	// Supports returns an error that says why a capability cannot be had, or nil.
	Supports(*csi.VolumeCapability) error
	// Create makes an empty volume at dir, which does not exist.
	Create(dir string) error
	// Clone makes dst, which does not exist, hold what src holds.
	Clone(src, dst string) error
	// Remove removes a volume or a snapshot, whatever modes the user gave to what is in it.
	Remove(dir string) error
	// Publish makes a volume appear at target; it is idempotent.
	Publish(dir, target string, readOnly bool) error
	// Unpublish undoes Publish; a target that does not exist is no error.
	Unpublish(target string) error
}

// driver is the three CSI services. What it does not implement answers Unimplemented.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer

	name, node string
	topology   bool
	store      *store
	backend    Backend
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: version}, nil
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	services := []csi.PluginCapability_Service_Type{csi.PluginCapability_Service_CONTROLLER_SERVICE}
	if d.topology {
		services = append(services, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS)
	}
	var r csi.GetPluginCapabilitiesResponse
	for _, s := range services {
		r.Capabilities = append(r.Capabilities, &csi.PluginCapability{
			Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: s}}})
	}
	return &r, nil
}

// here is the topology of this node, nil when volumes are not bound to it.
func (d *driver) here() *csi.Topology {
	if !d.topology {
		return nil
	}
	return &csi.Topology{Segments: map[string]string{"topology." + d.name + "/node": d.node}}
}

// logged writes each call, how long it took, and its error.
func logged(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	start := time.Now()
	resp, err := next(ctx, req)
	attrs := []any{"method", path.Base(info.FullMethod), "took", time.Since(start).Round(time.Millisecond)}
	if err != nil {
		slog.Error("call", append(attrs, "code", status.Code(err), "err", err)...)
	} else if info.FullMethod != csi.Identity_Probe_FullMethodName {
		slog.Info("call", attrs...)
	}
	return resp, err
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}
