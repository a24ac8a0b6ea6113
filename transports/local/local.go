// Package local delivers into a directory: each message becomes one JSON object
// on a line of its own, synced to the disk before Send returns. It is the default
// of a desk that has no provider yet, and a destination for other programs.
//
// The file is [FileName] in the directory, for all channels, for a channel is
// arbitrary text. Its lines have obligation_id, decision_id, channel, thread,
// subject, text, sent_ts (Unix seconds) and key. A reader takes the lines that are
// whole: what a writer left unfinished when it died stays behind as a line that
// is no JSON, and the next message starts on a new line.
package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"countersign/transports"
)

const (
	// FileName is where the messages are.
	FileName = "messages.jsonl"
	// lockName is a file of its own, so that FileName may be moved away at any
	// time while nobody holds the lock.
	lockName = "messages.lock"
)

// Config says where.
type Config struct {
	Dir string           // made, 0700, when it isn't there
	Now func() time.Time // for sent_ts; time.Now when nil
}

// A Transport appends to one directory's file. Any number of them, in any number
// of processes, may share it.
type Transport struct {
	dir  string
	now  func() time.Time
	open func(path string) (file, error)
}

var _ transports.Transport = (*Transport)(nil)

// New checks the configuration and touches nothing.
func New(c Config) (*Transport, error) {
	if c.Dir == "" {
		return nil, errors.New("local: dir is empty")
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Transport{dir: dir, now: c.Now, open: openFile}, nil
}

// Validate refuses what isn't valid text; JSON carries everything else exactly.
func (t *Transport) Validate(m transports.Message) error { return transports.CheckMessage(m) }

// Connect has nobody to connect to; the directory is looked at by Prepare.
func (t *Transport) Connect(ctx context.Context) (transports.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, &transports.PrepareError{Stage: stageOpen, Err: err}
	}
	return &session{t: t}, nil
}

func (t *Transport) path() string { return filepath.Join(t.dir, FileName) }

// file is what a delivery needs of *os.File.
type file interface {
	Stat() (os.FileInfo, error)
	ReadAt(p []byte, offset int64) (int, error)
	Write(p []byte) (int, error)
	Sync() error
	Close() error
}
