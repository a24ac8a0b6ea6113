package ledger

import (
	"context"
	"fmt"
)

// AgentLimits keep an agent that runs wild from flooding the operators. 0 is no limit.
type AgentLimits struct {
	Waiting int // obligations that wait for a decision with a draft of the agent
	Hourly  int // filings within an hour
}

// AgentLimitError says which of its limits an agent reached; nothing was filed.
type AgentLimitError struct {
	Agent       string
	What        string // "waiting drafts" or "filings within an hour"
	Limit, Have int
}

func (e *AgentLimitError) Error() string {
	return fmt.Sprintf("agent %q has %d %s, the limit is %d; nothing was filed", e.Agent, e.Have, e.What, e.Limit)
}

// allow refuses what is over a limit, in the filing's own transaction. A re-filing adds nothing to what waits.
func (a AgentLimits) allow(ctx context.Context, tx *txn, agent string, refiled bool) error {
	const hour = 3600 * 1_000_000
	for _, limit := range []struct {
		what  string
		most  int
		query string
		args  []any
	}{
		{"filings within an hour", a.Hourly, `SELECT count(*) FROM filings WHERE agent = $1 AND filed_us > $2`, []any{agent, tx.us - hour}},
		{"waiting drafts", unless(refiled, a.Waiting), `
			SELECT count(*) FROM obligations o
			WHERE o.status = 'drafted' AND (SELECT agent FROM filings WHERE obligation_id = o.id ORDER BY id DESC LIMIT 1) = $1`, []any{agent}},
	} {
		if limit.most <= 0 {
			continue
		}
		var have int
		if err := tx.QueryRowContext(ctx, limit.query, limit.args...).Scan(&have); err != nil {
			return err
		}
		if have >= limit.most {
			return &AgentLimitError{Agent: agent, What: limit.what, Limit: limit.most, Have: have}
		}
	}
	return nil
}

func unless(condition bool, n int) int {
	if condition {
		return 0
	}
	return n
}
