package sweep

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"countersign/ledger"
	"countersign/transports"
)

// childEnv makes the test binary a worker process: it holds its orders.
const childEnv = "COUNTERSIGN_SWEEP_CHILD"

const (
	// childLimit ends a worker process that hangs.
	childLimit = 4 * time.Minute

	// childBusy is how long a worker process waits for the ledger's write lock. Under the race detector the ledger is some twenty
	// times slower, and eight processes at once wait accordingly; how long a wait may be is no matter of these tests.
	childBusy = 2 * time.Minute
)

func TestMain(m *testing.M) {
	if orders := os.Getenv(childEnv); orders != "" {
		os.Exit(childMain(orders))
	}
	os.Exit(m.Run())
}

// orders are what a worker process is to do. It tells its parent of what it waits for, one line each on descriptor 3, and goes on
// when the same line comes on stdin. At the end its result is on stdout.
type orders struct {
	Path, Wire  string
	WaitAt      []Step // wait there, for each message
	WaitInSend  bool   // wait in the middle of each Send, with the message on the wire
	WaitReady   bool   // wait before the pass
	Concurrency int
	GrowNoMore  map[Step]bool // from there on no file may grow beyond FileLimit
	FileLimit   uint64        // 0: the size of the ledger's write-ahead log
	Ledger      string        // instead of a pass: "claimed" or "begun", a worker that calls the ledger alone
	Skew        time.Duration // added to the worker's clock from its first wait on
}

// result is what a worker process has to say at its end.
type result struct {
	Report Report
	Error  string
	Lost   map[string]bool // by step: was it refused as lost?
}

// child is the other end of a worker process.
type child struct {
	orders
	mu    sync.Mutex
	waits map[string]chan struct{}
	skew  atomic.Int64
}

func childMain(text string) int {
	c := &child{waits: map[string]chan struct{}{}}
	if err := json.Unmarshal([]byte(text), &c.orders); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	go c.listen()
	out, err := c.run()
	if err != nil {
		out.Error = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		return 2
	}
	return 0
}

func (c *child) run() (result, error) {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, func() { c.tell("terminated") })()
	l, err := ledger.Open(ctx, c.Path, ledger.Options{BusyTimeout: childBusy})
	if err != nil {
		return result{}, err
	}
	defer l.Close()
	f := &fake{wire: c.Wire, hook: func(_ context.Context, m transports.Message) {
		if c.WaitInSend {
			c.wait("sending", m.DecisionID)
		}
	}}
	s := New(l, Fixed(map[string]transports.Transport{"fake": f}))
	if c.WaitReady {
		c.wait("ready", 0)
	}
	if c.Ledger != "" {
		return c.bare(ctx, s)
	}
	report, err := s.Deliver(ctx, Options{Concurrency: c.Concurrency, Step: c.step,
		Now: func() time.Time { return time.Now().Add(time.Duration(c.skew.Load())) }})
	for _, v := range f.violations {
		err = errors.Join(err, errors.New(v))
	}
	return result{Report: report}, err
}

func (c *child) step(s Step, item Item) {
	if c.GrowNoMore[s] {
		if err := c.growNoMore(); err != nil {
			panic(err)
		}
	}
	for _, at := range c.WaitAt {
		if s == at {
			c.wait(string(s), item.DecisionID)
		}
	}
}

// growNoMore makes the kernel refuse this process every write past the limit, which is how a full disk feels to a file that has to
// grow. Writes in place still work.
func (c *child) growNoMore() error {
	signal.Ignore(unix.SIGXFSZ)
	limit := c.FileLimit
	if limit == 0 {
		info, err := os.Stat(c.Path + "-wal")
		if err != nil {
			return err
		}
		limit = uint64(info.Size())
	}
	return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: limit})
}

// bare is a worker that doesn't look at its locks: the ledger alone has to refuse it.
func (c *child) bare(ctx context.Context, s *Sweeper) (result, error) {
	w, err := s.place.register()
	if err != nil {
		return result{}, err
	}
	destinations, err := s.ledger.Destinations(ctx, ledger.DeliverFilter{})
	if err != nil {
		return result{}, err
	}
	ready, err := s.ledger.Next(ctx, destinations[0], ledger.DeliverFilter{}, 0)
	if err != nil {
		return result{}, err
	}
	claim, err := s.ledger.Claim(ctx, ready.DecisionID, w.name)
	if err != nil {
		return result{}, err
	}
	if c.Ledger == "begun" {
		if _, err := s.ledger.BeginDispatch(ctx, claim); err != nil {
			return result{}, err
		}
	}
	c.wait("holding", claim.DecisionID)
	_, begin := s.ledger.BeginDispatch(ctx, claim)
	out := result{Lost: map[string]bool{}}
	for step, err := range map[string]error{
		"begin":        begin,
		"cancel":       s.ledger.Cancel(ctx, claim, "woke up"),
		"complete":     s.ledger.Complete(ctx, claim, ledger.Receipt{Coordinate: "dreamt"}),
		"mark unknown": s.ledger.MarkUnknown(ctx, claim, ledger.Failure{Outcome: ledger.Refused, Stage: "dream"}),
	} {
		var lost *ledger.LostClaimError
		out.Lost[step] = errors.As(err, &lost)
	}
	return out, nil
}

// wait tells the parent, and waits for its go.
func (c *child) wait(what string, decision int64) {
	line := fmt.Sprintf("%s %d", what, decision)
	released := c.released(line)
	c.tell(line)
	<-released
	c.skew.Store(int64(c.Skew))
}

func (c *child) released(line string) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits[line] == nil {
		c.waits[line] = make(chan struct{})
	}
	return c.waits[line]
}

func (c *child) tell(line string) { fmt.Fprintln(os.NewFile(3, "events"), line) }

func (c *child) listen() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		close(c.released(lines.Text()))
	}
	os.Exit(3) // the parent is gone, or done with this process: nothing is left behind
}

// process is a running worker process, as its parent sees it.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	events *bufio.Scanner
	stdout bytes.Buffer
	stderr bytes.Buffer
}

// start starts a worker process on the bench's ledger and wire.
func (b *bench) start(o orders) *process {
	b.t.Helper()
	o.Path, o.Wire = b.path, b.fake.wire
	text, err := json.Marshal(o)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), childLimit)
	b.t.Cleanup(cancel) // ends it, by its process id, if it still runs
	p := &process{t: b.t, cmd: exec.CommandContext(ctx, os.Args[0])}
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		b.t.Fatal(err)
	}
	events, out, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { events.Close() })
	p.events = bufio.NewScanner(events)
	p.cmd.ExtraFiles = []*os.File{out}
	if err := p.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		b.t.Fatal(err)
	}
	return p
}

// next returns the next event, or "" at the process's end.
func (p *process) next() string {
	if !p.events.Scan() {
		return ""
	}
	return p.events.Text()
}

// await waits for an event that begins so, and returns it whole.
func (p *process) await(what string) string {
	p.t.Helper()
	line := p.next()
	if line == "" || !strings.HasPrefix(line, what) {
		p.t.Fatalf("the worker says %q, want %q\n%s%s", line, what, p.stdout.String(), p.stderr.String())
	}
	return line
}

// release lets the process go on from an event.
func (p *process) release(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// kill ends the process as a power cut would, and waits for its end.
func (p *process) kill() {
	p.t.Helper()
	p.signal(unix.SIGKILL)
	var exit *exec.ExitError
	if err := p.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		p.t.Fatalf("the worker was not killed: %v", err)
	}
}

// freeze stops the process, and waits until the kernel says that it is stopped.
func (p *process) freeze() {
	p.t.Helper()
	p.signal(unix.SIGSTOP)
	var status unix.WaitStatus
	if _, err := unix.Wait4(p.cmd.Process.Pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
		p.t.Fatalf("the worker is not stopped: %v", err)
	}
}

// finish waits for the process's own end and returns what it did. It must end with 0.
func (p *process) finish() result {
	p.t.Helper()
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatalf("the worker ended with %v\n%s", err, p.stderr.String())
	}
	var out result
	if err := json.Unmarshal(p.stdout.Bytes(), &out); err != nil {
		p.t.Fatalf("%v: %q", err, p.stdout.String())
	}
	return out
}
