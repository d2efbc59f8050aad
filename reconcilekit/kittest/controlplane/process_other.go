//go:build unix && !linux

package controlplane

import "syscall"

// dieWithParent does nothing where the kernel offers nothing.
func dieWithParent(*syscall.SysProcAttr) {}
