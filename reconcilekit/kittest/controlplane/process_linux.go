package controlplane

import "syscall"

// dieWithParent has the kernel kill a process when this one ends, however that comes about.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
