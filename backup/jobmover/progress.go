package jobmover

import (
	"context"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"example.com/pvcbackup/backup/contract"
)

// LogReader reads logs.
type LogReader interface {
	// Tail returns the last line of a container's log, and gives up when ctx ends.
	Tail(ctx context.Context, namespace, pod, container string) (string, error)
}

// PodLogs reads logs through the API server.
func PodLogs(pods corev1client.PodsGetter) LogReader { return podLogs{pods} }

type podLogs struct{ pods corev1client.PodsGetter }

func (l podLogs) Tail(ctx context.Context, namespace, pod, container string) (string, error) {
	one := int64(1)
	stream, err := l.pods.Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, TailLines: &one}).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	text, err := io.ReadAll(io.LimitReader(stream, maxLogLine))
	return string(text), err
}

const (
	// logTimeout bounds one look at a log.
	logTimeout = 3 * time.Second
	// logPatience is how long Poll waits for a look that it began; the answer counts in a later Poll.
	logPatience = 250 * time.Millisecond
	// logReaders bounds the looks in flight: a node that never answers must not collect them.
	logReaders = 16
	// logForget is when a mover that is not polled any more is forgotten.
	logForget  = time.Hour
	maxLogLine = 64 << 10
)

// progressReader remembers each running mover's progress between looks at its log.
type progressReader struct {
	logs    LogReader
	every   time.Duration
	now     func() time.Time
	readers chan struct{}

	mu   sync.Mutex
	pods map[types.UID]*reading
}

type reading struct {
	progress                      *contract.Progress
	asked, changed, read, touched time.Time
	busy                          bool
}

func newProgressReader(o Options) *progressReader {
	return &progressReader{
		logs: o.Logs, every: o.LogEvery, now: o.Now, readers: make(chan struct{}, logReaders), pods: map[types.UID]*reading{},
	}
}

// look returns what is known of a running mover's progress, and looks again when it is time to.
func (p *progressReader) look(ctx context.Context, pod *corev1.Pod) reading {
	if p.logs == nil {
		return reading{}
	}
	if done := p.begin(ctx, pod); done != nil {
		patience := time.NewTimer(logPatience)
		defer patience.Stop()
		select {
		case <-done:
		case <-patience.C:
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.pods[pod.UID]; r != nil {
		return *r
	}
	return reading{}
}

// begin starts a look in the background when one is due and none is under way.
func (p *progressReader) begin(ctx context.Context, pod *corev1.Pod) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	r := p.pods[pod.UID]
	if r == nil {
		p.sweep(now)
		r = &reading{}
		p.pods[pod.UID] = r
	}
	r.touched = now
	if r.busy || !r.asked.IsZero() && now.Sub(r.asked) < p.every {
		return nil
	}
	select {
	case p.readers <- struct{}{}:
	default:
		return nil
	}
	r.busy, r.asked = true, now
	done := make(chan struct{})
	namespace, name := pod.Namespace, pod.Name
	go func() {
		defer close(done)
		defer func() { <-p.readers }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), logTimeout)
		defer cancel()
		line, err := p.logs.Tail(ctx, namespace, name, ContainerName)
		p.took(r, line, err)
	}()
	return done
}

// took records what a look found. A look that failed says nothing about the mover.
func (p *progressReader) took(r *reading, line string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.busy = false
	if err != nil {
		return
	}
	r.read = p.now()
	progress, ok := contract.ParseProgress(line)
	if r.changed.IsZero() || ok && (r.progress == nil || moved(*r.progress, progress)) {
		r.changed = r.read
	}
	if ok {
		r.progress = &progress
	}
}

// moved leaves out rate and remaining time, which change while nothing moves.
func moved(before, after contract.Progress) bool {
	before.Rate, before.ETA, after.Rate, after.ETA = 0, 0, 0, 0
	return before != after
}

func (p *progressReader) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pods, uid)
}

func (p *progressReader) sweep(now time.Time) {
	for uid, r := range p.pods {
		if !r.busy && now.Sub(r.touched) > logForget {
			delete(p.pods, uid)
		}
	}
}
