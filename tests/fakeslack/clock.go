package fakeslack

import (
	"fmt"
	"time"
)

// firstTS is just before the first timestamp, in microseconds.
const firstTS = 1_699_999_999 * 1_000_000

const (
	step  = time.Second + 100*time.Microsecond // between two timestamps
	click = time.Minute                        // before somebody clicks
)

// A clock gives timestamps that rise, and are no two alike: the test's time where it has a clock, else steps of a second.
type clock struct {
	now  func() time.Time
	last int64 // microseconds
}

// next is the next moment.
func (c *clock) next() int64 {
	if c.now == nil {
		c.pass(step)
		return c.last
	}
	c.last = max(c.last+100, c.now().UnixMicro())
	return c.last
}

func (c *clock) pass(d time.Duration) { c.last += d.Microseconds() }

// read is when somebody has read a message and clicks.
func (c *clock) read() int64 {
	if c.now == nil {
		c.pass(click)
	}
	return c.next()
}

// format writes a moment as Slack does: "1700000000.000100".
func format(moment int64) string { return fmt.Sprintf("%d.%06d", moment/1_000_000, moment%1_000_000) }

// Pass lets time go by between two timestamps. With WithNow it is the test's clock that passes.
func (s *Server) Pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock.pass(d)
}
