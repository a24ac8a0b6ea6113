package telegram

import (
	"sync"
	"time"
)

// A memory holds what is true of chats for a while. It is bounded, and safe for
// concurrent use.
type memory struct {
	size int

	mu    sync.Mutex
	spans map[chatKey]span
}

// chatKey names a chat as one bot sees it: another token may be another bot.
type chatKey struct {
	bot  int64
	chat string
}

// span is from inclusive to exclusive. A clock set back before it ends it, too.
type span struct{ from, to time.Time }

func newMemory(size int) *memory { return &memory{size: size, spans: make(map[chatKey]span)} }

// keep remembers k from now on, for so long. When it is full it forgets what would
// end first.
func (m *memory) keep(k chatKey, now time.Time, long time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.spans[k]; !there && len(m.spans) >= m.size {
		m.forgetFirst()
	}
	m.spans[k] = span{now, now.Add(long)}
}

func (m *memory) forgetFirst() {
	var (
		first chatKey
		end   time.Time
	)
	for k, s := range m.spans {
		if end.IsZero() || s.to.Before(end) {
			first, end = k, s.to
		}
	}
	delete(m.spans, first)
}

// left is how long k is still remembered; 0 is not at all.
func (m *memory) left(k chatKey, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, there := m.spans[k]
	if !there || now.Before(s.from) || !now.Before(s.to) {
		delete(m.spans, k)
		return 0
	}
	return s.to.Sub(now)
}

func (m *memory) forget(k chatKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.spans, k)
}
