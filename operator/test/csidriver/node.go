package main

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// NodeGetCapabilities returns none. In particular a node does not keep a ReadWriteOncePod volume from being published
// twice: the scheduler sees to it that one pod has it.
func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node, AccessibleTopology: d.here()}, nil
}

func (d *driver) NodePublishVolume(_ context.Context, req *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if req.GetVolumeId() == "" || req.GetTargetPath() == "" || req.GetVolumeCapability() == nil {
		return nil, invalid("volume_id, target_path and volume_capability are all required")
	}
	if err := d.backend.Supports(req.GetVolumeCapability()); err != nil {
		return nil, invalid("%v", err)
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	if _, err := d.store.get(volumes, req.GetVolumeId()); err != nil {
		return nil, coded(err)
	}
	err := d.backend.Publish(d.store.data(volumes, req.GetVolumeId()), req.GetTargetPath(), req.GetReadonly())
	return &csi.NodePublishVolumeResponse{}, coded(err)
}

func (d *driver) NodeUnpublishVolume(_ context.Context, req *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if req.GetVolumeId() == "" || req.GetTargetPath() == "" {
		return nil, invalid("volume_id and target_path are both required")
	}
	return &csi.NodeUnpublishVolumeResponse{}, coded(d.backend.Unpublish(req.GetTargetPath()))
}
