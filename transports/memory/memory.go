// Package memory answers one question: what was a provider's answer a while ago?
//
// What Prepare asks (is the channel there, are we in it, may it be written to) costs
// a provider's quota. An answer is believed for some minutes.
package memory

import (
	"sync"
	"time"
)

// A Memory holds what is true of keys for a while. It is bounded, and safe for
// concurrent use.
type Memory[K comparable] struct {
	size int

	mu    sync.Mutex
	spans map[K]span
}

// span is from inclusive to exclusive. A clock set back before it ends it, too.
type span struct{ from, to time.Time }

// New makes a memory for at most size keys.
func New[K comparable](size int) *Memory[K] {
	return &Memory[K]{size: size, spans: make(map[K]span)}
}

// Keep remembers k from now on, for so long. When it is full it forgets what would
// end first.
func (m *Memory[K]) Keep(k K, now time.Time, long time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.spans[k]; !there && len(m.spans) >= m.size {
		m.forgetFirst()
	}
	m.spans[k] = span{now, now.Add(long)}
}

func (m *Memory[K]) forgetFirst() {
	var (
		first K
		end   time.Time
	)
	for k, s := range m.spans {
		if end.IsZero() || s.to.Before(end) {
			first, end = k, s.to
		}
	}
	delete(m.spans, first)
}

// Left is how long k is still remembered; 0 is not at all.
func (m *Memory[K]) Left(k K, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, there := m.spans[k]
	if !there || now.Before(s.from) || !now.Before(s.to) {
		delete(m.spans, k)
		return 0
	}
	return s.to.Sub(now)
}

// Forget forgets one key.
func (m *Memory[K]) Forget(k K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.spans, k)
}

// Clear forgets all.
func (m *Memory[K]) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.spans)
}
