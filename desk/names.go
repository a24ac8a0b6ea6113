package desk

import (
	"context"
	"sync"
	"time"

	"countersign/notify"
	"countersign/transports"
)

const (
	// nameLife is how long a provider's word for a destination is believed. Each card edited would else cost it a request.
	nameLife = 10 * time.Minute
	// maxNames bounds what is remembered; then all of it is asked for anew.
	maxNames = 1_000
)

// names remembers what providers call destinations. The zero value knows none. A failure is not remembered.
type names struct {
	mu    sync.Mutex
	known map[[2]string]named
}

type named struct {
	notify.Destination
	until time.Time
}

func (n *names) get(platform, channel string, now time.Time) (notify.Destination, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	found, ok := n.known[[2]string{platform, channel}]
	return found.Destination, ok && now.Before(found.until)
}

func (n *names) keep(platform, channel string, about notify.Destination, until time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil || len(n.known) >= maxNames {
		n.known = map[[2]string]named{}
	}
	n.known[[2]string{platform, channel}] = named{about, until}
}

// describe asks a provider what it calls a destination. A transport that can't say is no error: the card shows the raw address.
func (d *Desk) describe(ctx context.Context, platform, channel string) (notify.Destination, error) {
	describer, ok := d.transports[platform].(transports.Describer)
	if !ok {
		return notify.Destination{}, nil
	}
	if about, ok := d.names.get(platform, channel, d.now()); ok {
		return about, nil
	}
	found, err := describer.Describe(ctx, channel)
	if err != nil {
		return notify.Destination{}, err
	}
	about := notify.Destination{Name: found.Name, External: found.External, Known: true}
	d.names.keep(platform, channel, about, d.now().Add(nameLife))
	return about, nil
}
