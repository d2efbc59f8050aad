//go:build unix

package controlplane

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// port is a TCP port on loopback that is reserved: it is bound, without listening, in a way that lets other processes
// of this user listen on it but has the system give it to nobody else.
type port struct{ fd, number int }

func (c *Cluster) reservePorts(context.Context) error {
	for range 2 {
		p, err := reservePort()
		if err != nil {
			return fmt.Errorf("reserving a port on 127.0.0.1: %w", err)
		}
		c.ports = append(c.ports, p)
	}
	return nil
}

func reservePort() (*port, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	unix.CloseOnExec(fd)
	p := &port{fd: fd}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		p.release()
		return nil, os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		p.release()
		return nil, os.NewSyscallError("bind", err)
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		p.release()
		return nil, os.NewSyscallError("getsockname", err)
	}
	p.number = bound.(*unix.SockaddrInet4).Port // as bound above
	return p, nil
}

func (p *port) release() { _ = unix.Close(p.fd) }

func (p *port) url() string { return fmt.Sprintf("https://127.0.0.1:%d", p.number) }
