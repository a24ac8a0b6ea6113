package ledger

import (
	"context"
	"database/sql"
	"sync"
)

// compiled keeps the steps' statements compiled. More than half of a step's time would otherwise go into compiling the guards that its
// statements fire. A statement is kept when it comes for the third time, so that a process with a step or two to do pays nothing.
type compiled struct {
	db     *sql.DB
	mu     sync.Mutex
	asked  map[string]int
	wanted []string // asked for often enough, not compiled yet
	kept   map[string]*sql.Stmt
}

// keptFrom is how often a statement has to come until it is kept.
const keptFrom = 3

func newCompiled(db *sql.DB) *compiled {
	return &compiled{db: db, asked: map[string]int{}, kept: map[string]*sql.Stmt{}}
}

// get returns the statement if it is kept, and notes that it was asked for.
func (c *compiled) get(query string) *sql.Stmt {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stmt := c.kept[query]; stmt != nil {
		return stmt
	}
	if c.asked[query]++; c.asked[query] == keptFrom {
		c.wanted = append(c.wanted, query)
	}
	return nil
}

// compile prepares what came often enough. It needs a connection of the pool, so it runs before a step takes one. What can't be prepared now
// is run without, as before: its error, if it has one, is the step's to tell.
func (c *compiled) compile(ctx context.Context) {
	for _, query := range c.take() {
		stmt, err := c.db.PrepareContext(ctx, query)
		c.mu.Lock()
		if err == nil {
			c.kept[query] = stmt
		} else {
			delete(c.asked, query)
		}
		c.mu.Unlock()
	}
}

func (c *compiled) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := c.wanted
	c.wanted = nil
	return wanted
}

// ExecContext runs a statement, compiled if it is kept.
func (t *txn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if stmt := t.statement(ctx, query); stmt != nil {
		return stmt.ExecContext(ctx, args...)
	}
	return t.Tx.ExecContext(ctx, query, args...)
}

// QueryContext runs a query, compiled if it is kept.
func (t *txn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if stmt := t.statement(ctx, query); stmt != nil {
		return stmt.QueryContext(ctx, args...)
	}
	return t.Tx.QueryContext(ctx, query, args...)
}

// QueryRowContext runs a query for one row, compiled if it is kept.
func (t *txn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if stmt := t.statement(ctx, query); stmt != nil {
		return stmt.QueryRowContext(ctx, args...)
	}
	return t.Tx.QueryRowContext(ctx, query, args...)
}

func (t *txn) statement(ctx context.Context, query string) *sql.Stmt {
	if t.compiled == nil {
		return nil
	}
	if stmt := t.compiled.get(query); stmt != nil {
		return t.StmtContext(ctx, stmt)
	}
	return nil
}
