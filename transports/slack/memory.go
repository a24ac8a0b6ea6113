package slack

import (
	"sync"
	"time"
)

// A memory holds what is true of channels for a while. It is bounded, and safe for
// concurrent use.
type memory struct {
	size int

	mu    sync.Mutex
	spans map[place]span
}

// place is a channel as one workspace's token sees it: the next token may be another's.
type place struct{ team, channel string }

// span is from inclusive to exclusive. A clock set back before it ends it, too.
type span struct{ from, to time.Time }

func newMemory(size int) *memory { return &memory{size: size, spans: make(map[place]span)} }

// keep remembers p from now on, for so long. When it is full it forgets what would end
// first.
func (m *memory) keep(p place, now time.Time, long time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.spans[p]; !there && len(m.spans) >= m.size {
		m.forgetFirst()
	}
	m.spans[p] = span{now, now.Add(long)}
}

func (m *memory) forgetFirst() {
	var (
		first place
		end   time.Time
	)
	for p, s := range m.spans {
		if end.IsZero() || s.to.Before(end) {
			first, end = p, s.to
		}
	}
	delete(m.spans, first)
}

// left is how long p is still remembered; 0 is not at all.
func (m *memory) left(p place, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, there := m.spans[p]
	if !there || now.Before(s.from) || !now.Before(s.to) {
		delete(m.spans, p)
		return 0
	}
	return s.to.Sub(now)
}

func (m *memory) forget(p place) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.spans, p)
}

func (m *memory) forgetAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.spans)
}
