package cli

import (
	"fmt"
	"sync"
	"time"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/blockdev"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/restorer"
)

// meter prints progress: a line that changes on a terminal, else a line of JSON every few seconds.
type meter struct {
	tool  *tool
	stage string
	start time.Time

	mu      sync.Mutex
	last    time.Time
	printed bool
}

const (
	meterLogEvery      = 5 * time.Second
	meterTerminalEvery = 200 * time.Millisecond
)

func (t *tool) meter(stage string) *meter { return &meter{tool: t, stage: stage, start: t.Now()} }

func (m *meter) archiver(p archiver.Progress) {
	m.show(contract.Progress{Bytes: int64(p.Bytes), TotalBytes: int64(p.TotalBytes), Files: int64(p.Files), TotalFiles: int64(p.TotalFiles)})
}

func (m *meter) restorer(p restorer.Progress) {
	m.show(contract.Progress{Bytes: int64(p.Bytes), TotalBytes: int64(p.TotalBytes), Files: int64(p.Files), TotalFiles: int64(p.TotalFiles)})
}

func (m *meter) volume(p blockdev.Progress) { m.bytes(int64(p.Bytes), int64(p.TotalBytes)) }

// packs counts packs as files.
func (m *meter) packs(done, total int) {
	m.show(contract.Progress{Files: int64(done), TotalFiles: int64(total)})
}

func (m *meter) bytes(done, total int64) { m.show(contract.Progress{Bytes: done, TotalBytes: total}) }

func (m *meter) show(p contract.Progress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	every := meterLogEvery
	if m.tool.Terminal {
		every = meterTerminalEvery
	}
	now := m.tool.Now()
	if m.printed && now.Sub(m.last) < every {
		return
	}
	m.last, m.printed = now, true
	p = m.complete(p, now)
	if m.tool.Terminal {
		fmt.Fprintf(m.tool.Stderr, "\r\x1b[K%s", progressLine(p))
		return
	}
	fmt.Fprintln(m.tool.Stderr, p.Line())
}

// complete adds the stage, the rate so far, and the time that the rest takes at that rate.
func (m *meter) complete(p contract.Progress, now time.Time) contract.Progress {
	p.Stage = m.stage
	if elapsed := now.Sub(m.start).Seconds(); elapsed > 0.5 {
		p.Rate = int64(float64(p.Bytes) / elapsed)
	}
	if p.Rate > 0 && p.TotalBytes > p.Bytes {
		p.ETA = (p.TotalBytes - p.Bytes) / p.Rate
	}
	return p
}

func progressLine(p contract.Progress) string {
	line := fmt.Sprintf("%s: %d", p.Stage, p.Files)
	if p.TotalFiles > 0 {
		line += fmt.Sprintf(" of %d", p.TotalFiles)
	}
	if p.Bytes > 0 || p.TotalBytes > 0 {
		line += ", " + size(p.Bytes)
	}
	if p.TotalBytes > 0 {
		line += fmt.Sprintf(" of %s (%d %%)", size(p.TotalBytes), p.Bytes*100/p.TotalBytes)
	}
	if p.Rate > 0 {
		line += fmt.Sprintf(", %s/s", size(p.Rate))
	}
	if p.ETA > 0 {
		line += fmt.Sprintf(", %s left", time.Duration(p.ETA)*time.Second)
	}
	return line
}

func (m *meter) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tool.Terminal && m.printed {
		fmt.Fprint(m.tool.Stderr, "\r\x1b[K")
	}
}
