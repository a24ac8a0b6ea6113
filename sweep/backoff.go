package sweep

import (
	"math"
	"time"
)

const (
	firstBackoff = time.Minute
	maxBackoff   = time.Hour

	// maxRetryAfter bounds what a provider may ask for: 10,000 seconds have been seen, and an absurd number must not silence a
	// destination for good.
	maxRetryAfter = 24 * time.Hour
)

// backoff is how long a destination is left alone after so many failures in a row to prepare it (1 is the first): a minute,
// doubling up to an hour, plus up to a fifth by jitter (0 to 1), so that many destinations don't come back at one instant. It is
// never less than the provider asked for.
func backoff(failures int, retryAfter time.Duration, jitter float64) time.Duration {
	wait := maxBackoff
	if doublings := max(failures, 1) - 1; doublings < 6 { // 2^6 minutes are more than an hour
		wait = firstBackoff * time.Duration(math.Exp2(float64(doublings)))
	}
	wait += time.Duration(float64(wait) / 5 * jitter)
	return max(wait, min(retryAfter, maxRetryAfter))
}
