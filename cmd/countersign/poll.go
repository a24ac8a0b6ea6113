package main

import (
	"context"
	"time"
)

// poll calls look until it answers true, fails, or limit is over; it looks at least once. It reports the last answer. The
// pauses grow, so that a long wait costs little and a short one is answered soon.
func (a *app) poll(ctx context.Context, limit time.Duration, look func() (bool, error)) (bool, error) {
	const shortest, longest = 100 * time.Millisecond, 2 * time.Second
	end := a.env.Now().Add(limit)
	for pause := shortest; ; pause = min(2*pause, longest) {
		done, err := look()
		if done || err != nil {
			return done, err
		}
		left := end.Sub(a.env.Now())
		if left <= 0 {
			return false, nil
		}
		select {
		case <-a.env.After(min(pause, left)):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}
