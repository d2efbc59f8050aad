package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// control is the content of control.json.
type control struct {
	Methods    map[string]fault `json:"methods"`
	NeverReady bool             `json:"neverReady"`
}

// fault is how one method misbehaves.
type fault struct {
	Delay   string     `json:"delay"`   // a duration such as "2s"
	Code    codes.Code `json:"code"`    // a gRPC code such as "RESOURCE_EXHAUSTED"; "OK" or none: no failure
	Message string     `json:"message"` // what the error says
	Lose    bool       `json:"lose"`    // the work is done, then the call fails
}

// readControl reads control.json below root; no file means no faults.
func readControl(root string) (control, error) {
	var c control
	file := filepath.Join(root, "control.json")
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("%s is not as documented: %w", file, err)
	}
	return c, nil
}

// faulty makes methods misbehave as control.json says.
func (d *driver) faulty(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	c, err := readControl(d.store.root)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	f := c.Methods[path.Base(info.FullMethod)]
	if err := f.wait(ctx); err != nil {
		return nil, err
	}
	if f.Code == codes.OK {
		return next(ctx, req)
	}
	if f.Lose {
		if _, err := next(ctx, req); err != nil {
			return nil, err
		}
	}
	return nil, status.Error(f.Code, "asked for by control.json: "+f.Message)
}

func (f fault) wait(ctx context.Context) error {
	if f.Delay == "" {
		return nil
	}
	delay, err := time.ParseDuration(f.Delay)
	if err != nil {
		return status.Errorf(codes.Internal, "control.json: delay: %v", err)
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}
