package interact

import (
	"context"
	"fmt"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"countersign/operator"
)

// who turns the person into an operator, or refuses. Both the operators' list and Slack are asked at each click; what fails denies.
func (h *Handler) who(ctx context.Context, c click) (operator.Operator, error) {
	directory, err := h.Operators()
	if err != nil {
		return operator.Operator{}, fmt.Errorf("the operators can't be read: %w", err)
	}
	op, err := directory.BySlack(c.team, c.user)
	if err != nil {
		return operator.Operator{}, err
	}
	bot, err := h.people.bot(c.team, c.user, h.Now(), func() (*slackgo.User, error) { return h.API.GetUserInfoContext(ctx, c.user) })
	if err != nil {
		return operator.Operator{}, fmt.Errorf("who clicked could not be asked: %w", unanswered("users.info", err))
	}
	if bot {
		return operator.Operator{}, fmt.Errorf("%s is a bot, a guest or a closed account: %w", c.user, operator.ErrNotAuthorised)
	}
	return op, nil
}

// people remembers for a while what Slack said of a user. The zero value knows nobody.
type people struct {
	mu    sync.Mutex
	known map[[2]string]time.Time // persons, and until when they are taken for one
}

const remembered = 5 * time.Minute

// bot tells whether the user is anything but a full, living member of that team.
func (p *people) bot(team, user string, now time.Time, ask func() (*slackgo.User, error)) (bool, error) {
	key := [2]string{team, user}
	p.mu.Lock()
	until, known := p.known[key]
	p.mu.Unlock()
	if known && now.Before(until) {
		return false, nil
	}
	u, err := ask()
	if err != nil {
		return true, err
	}
	if u.ID != user || u.TeamID != team || u.IsBot || u.Deleted || u.IsStranger || u.IsRestricted || u.IsUltraRestricted {
		return true, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[[2]string]time.Time{}
	}
	p.known[key] = now.Add(remembered)
	return false, nil
}
