package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const defaultCapacity = 1 << 30 // bytes, of a volume asked for without a size

func (d *driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	var r csi.ControllerGetCapabilitiesResponse
	for _, t := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csi.ControllerServiceCapability_RPC_LIST_VOLUMES,
		csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
		csi.ControllerServiceCapability_RPC_GET_CAPACITY,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		r.Capabilities = append(r.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}}})
	}
	return &r, nil
}

func (d *driver) CreateVolume(_ context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if req.GetName() == "" {
		return nil, invalid("name is empty")
	}
	if err := d.supports(req.GetVolumeCapabilities()); err != nil {
		return nil, err
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	k, id, err := sourceOf(req.GetVolumeContentSource())
	if err != nil {
		return nil, err
	}
	r := record{ID: idFor(volumes, req.GetName()), Name: req.GetName(), Created: time.Now()}
	if id != "" {
		r.Source = string(k) + "/" + id
	}
	if old, err := d.store.get(volumes, r.ID); err == nil {
		if old.Source != r.Source || !within(old.Capacity, req.GetCapacityRange()) {
			return nil, status.Errorf(codes.AlreadyExists, "volume %q exists with a capacity of %d bytes and the source %q", r.Name, old.Capacity, old.Source)
		}
		return d.volume(old, req.GetVolumeContentSource()), nil
	} else if !errors.Is(err, errMissing) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	least, fill := int64(0), d.backend.Create
	if id != "" {
		source, err := d.store.get(k, id)
		if err != nil {
			return nil, coded(err)
		}
		least = source.Capacity
		fill = func(data string) error { return d.backend.Clone(d.store.data(k, id), data) }
	}
	if r.Capacity, err = capacityFor(req.GetCapacityRange(), least); err != nil {
		return nil, err
	}
	if err := d.store.add(volumes, r, fill); err != nil {
		return nil, coded(err)
	}
	return d.volume(r, req.GetVolumeContentSource()), nil
}

// sourceOf returns what a volume is to be made from, or an empty ID.
func sourceOf(s *csi.VolumeContentSource) (kind, string, error) {
	switch {
	case s == nil:
		return "", "", nil
	case s.GetSnapshot() != nil && s.GetSnapshot().GetSnapshotId() != "":
		return snapshots, s.GetSnapshot().GetSnapshotId(), nil
	case s.GetVolume() != nil && s.GetVolume().GetVolumeId() != "":
		return volumes, s.GetVolume().GetVolumeId(), nil
	}
	return "", "", invalid("volume_content_source names neither a snapshot nor a volume")
}

// capacityFor returns the bytes of a new volume whose source has least bytes.
func capacityFor(asked *csi.CapacityRange, least int64) (int64, error) {
	required, limit := asked.GetRequiredBytes(), asked.GetLimitBytes()
	if required < 0 || limit < 0 || (limit > 0 && limit < required) {
		return 0, invalid("capacity_range asks for %d bytes at least and %d at most", required, limit)
	}
	if required > 0 && required < least || limit > 0 && limit < least {
		return 0, status.Errorf(codes.OutOfRange, "the source has %d bytes, more than asked for", least)
	}
	size := max(required, least)
	if size == 0 {
		size = defaultCapacity
		if limit > 0 {
			size = min(size, limit)
		}
	}
	return size, nil
}

func within(capacity int64, asked *csi.CapacityRange) bool {
	return capacity >= asked.GetRequiredBytes() && (asked.GetLimitBytes() == 0 || capacity <= asked.GetLimitBytes())
}

func (d *driver) volume(r record, source *csi.VolumeContentSource) *csi.CreateVolumeResponse {
	v := &csi.Volume{
		VolumeId: r.ID, CapacityBytes: r.Capacity, ContentSource: source,
		VolumeContext: map[string]string{"directory": d.store.data(volumes, r.ID)},
	}
	if here := d.here(); here != nil {
		v.AccessibleTopology = []*csi.Topology{here}
	}
	return &csi.CreateVolumeResponse{Volume: v}
}

func (d *driver) DeleteVolume(_ context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	return &csi.DeleteVolumeResponse{}, d.remove(volumes, req.GetVolumeId())
}

func (d *driver) DeleteSnapshot(_ context.Context, req *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	return &csi.DeleteSnapshotResponse{}, d.remove(snapshots, req.GetSnapshotId())
}

func (d *driver) remove(k kind, id string) error {
	if id == "" {
		return invalid("id is empty")
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	return coded(d.store.remove(k, id))
}

func (d *driver) CreateSnapshot(_ context.Context, req *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if req.GetName() == "" || req.GetSourceVolumeId() == "" {
		return nil, invalid("name and source_volume_id are both required")
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	id := idFor(snapshots, req.GetName())
	r, err := d.store.get(snapshots, id)
	if errors.Is(err, errMissing) {
		r, err = d.take(id, req)
	}
	if err != nil {
		return nil, coded(err)
	}
	if r.Source != string(volumes)+"/"+req.GetSourceVolumeId() {
		return nil, status.Errorf(codes.AlreadyExists, "snapshot %q exists, of %s", r.Name, r.Source)
	}
	s, err := d.snapshot(r)
	return &csi.CreateSnapshotResponse{Snapshot: s}, err
}

// take makes a snapshot. Its time is that of the beginning: nothing in it is older than that by much, and nobody's
// write after it is promised to be in.
func (d *driver) take(id string, req *csi.CreateSnapshotRequest) (record, error) {
	source, err := d.store.get(volumes, req.GetSourceVolumeId())
	if err != nil {
		return record{}, err
	}
	r := record{ID: id, Name: req.GetName(), Source: string(volumes) + "/" + source.ID, Capacity: source.Capacity, Created: time.Now()}
	return r, d.store.add(snapshots, r, func(data string) error {
		return d.backend.Clone(d.store.data(volumes, source.ID), data)
	})
}

func (d *driver) snapshot(r record) (*csi.Snapshot, error) {
	c, err := readControl(d.store.root)
	if err != nil {
		return nil, coded(err)
	}
	return &csi.Snapshot{
		SnapshotId: r.ID, SourceVolumeId: r.Source[len(volumes)+1:], SizeBytes: r.Capacity,
		CreationTime: timestamppb.New(r.Created), ReadyToUse: !c.NeverReady,
	}, nil
}

func (d *driver) ListVolumes(_ context.Context, req *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	all, err := d.store.list(volumes)
	if err != nil {
		return nil, coded(err)
	}
	part, next, err := page(all, req.GetStartingToken(), req.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	r := &csi.ListVolumesResponse{NextToken: next}
	for _, v := range part {
		r.Entries = append(r.Entries, &csi.ListVolumesResponse_Entry{Volume: d.volume(v, nil).Volume})
	}
	return r, nil
}

func (d *driver) ListSnapshots(_ context.Context, req *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	all, err := d.store.list(snapshots)
	if err != nil {
		return nil, coded(err)
	}
	var wanted []record
	for _, s := range all {
		if (req.GetSnapshotId() == "" || req.GetSnapshotId() == s.ID) &&
			(req.GetSourceVolumeId() == "" || string(volumes)+"/"+req.GetSourceVolumeId() == s.Source) {
			wanted = append(wanted, s)
		}
	}
	part, next, err := page(wanted, req.GetStartingToken(), req.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	r := &csi.ListSnapshotsResponse{NextToken: next}
	for _, p := range part {
		s, err := d.snapshot(p)
		if err != nil {
			return nil, err
		}
		r.Entries = append(r.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: s})
	}
	return r, nil
}

// page cuts out the records from a token on, a token being the number of records before it.
func page(all []record, token string, most int32) (part []record, next string, err error) {
	start := 0
	if token != "" {
		if start, err = strconv.Atoi(token); err != nil || start < 0 || start > len(all) {
			return nil, "", status.Errorf(codes.Aborted, "starting_token %q is none of ours", token)
		}
	}
	part = all[start:]
	if most > 0 && int(most) < len(part) {
		return part[:most], strconv.Itoa(start + int(most)), nil
	}
	return part, "", nil
}

func (d *driver) ValidateVolumeCapabilities(_ context.Context, req *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if req.GetVolumeId() == "" || len(req.GetVolumeCapabilities()) == 0 {
		return nil, invalid("volume_id and volume_capabilities are both required")
	}
	if _, err := d.store.get(volumes, req.GetVolumeId()); err != nil {
		return nil, coded(err)
	}
	if err := d.supports(req.GetVolumeCapabilities()); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: req.GetVolumeContext(), VolumeCapabilities: req.GetVolumeCapabilities(), Parameters: req.GetParameters()}}, nil
}

// GetCapacity returns what is free where the root directory lies.
func (d *driver) GetCapacity(context.Context, *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(d.store.root, &st); err != nil {
		return nil, coded(err)
	}
	return &csi.GetCapacityResponse{AvailableCapacity: int64(st.Bavail) * st.Bsize}, nil
}

func (d *driver) supports(capabilities []*csi.VolumeCapability) error {
	if len(capabilities) == 0 {
		return invalid("volume_capabilities is empty")
	}
	for _, c := range capabilities {
		if err := d.backend.Supports(c); err != nil {
			return invalid("%v", err)
		}
	}
	return nil
}

// coded gives an error of ours its gRPC code.
func coded(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errMissing):
		return status.Error(codes.NotFound, err.Error())
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	if _, is := status.FromError(err); is {
		return err
	}
	return status.Error(codes.Internal, err.Error())
}
