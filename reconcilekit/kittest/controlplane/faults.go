//go:build unix

package controlplane

import (
	"encoding/json"
	"time"
)

// Faults is how the CSI driver misbehaves. The zero value is: not at all.
type Faults struct {
	// Methods has faults by the names of CSI methods, such as "CreateSnapshot".
	Methods map[string]Fault
	// NeverReady has snapshots reported as not ready to use, for as long as it is set.
	NeverReady bool
}

// Fault is how one method misbehaves.
type Fault struct {
	// Delay is waited before anything else.
	Delay time.Duration
	// Code is that of the error, such as "RESOURCE_EXHAUSTED". Empty: the method succeeds.
	Code string
	// Message is what the error says.
	Message string
	// Lose has the method do its work before it fails, so that only its answer is lost.
	Lose bool
}

// SetFaults has the CSI driver misbehave from its next call on, until set otherwise.
func (c *Cluster) SetFaults(f Faults) error {
	type fault struct {
		Delay   string `json:"delay"`
		Code    string `json:"code"`
		Message string `json:"message"`
		Lose    bool   `json:"lose"`
	}
	control := struct {
		Methods    map[string]fault `json:"methods"`
		NeverReady bool             `json:"neverReady"`
	}{map[string]fault{}, f.NeverReady}
	for method, m := range f.Methods {
		if m.Code == "" {
			m.Code = "OK"
		}
		control.Methods[method] = fault{m.Delay.String(), m.Code, m.Message, m.Lose}
	}
	data, err := json.Marshal(control)
	if err != nil {
		return err
	}
	return c.writeControl(data)
}
