package sweep

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"countersign/ledger"
)

// writeLock takes the ledger's write lock, as another process would hold it.
func (b *bench) writeLock() (release func()) {
	b.t.Helper()
	db, err := sql.Open("sqlite", "file:"+b.path+"?_txlock=immediate")
	if err != nil {
		b.t.Fatal(err)
	}
	tx, err := db.BeginTx(b.t.Context(), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return func() {
		if err := errors.Join(tx.Rollback(), db.Close()); err != nil {
			b.t.Error(err)
		}
	}
}

// spoolOne approves and sends a message whose receipt the ledger can't take, and returns its slot. Other slots are kept from
// recovery meanwhile, as their living owners would.
func (b *bench) spoolOne(channel string) (ledger.Decided, string) {
	b.t.Helper()
	before := b.slots()
	for _, other := range before {
		defer b.own(other)()
	}
	d := b.approve(channel, "x")
	report, err := b.deliverBusy(func() {})
	if !errors.Is(err, ledger.ErrBusy) {
		b.t.Fatalf("err: %v", err)
	}
	coordinate := fmt.Sprintf("wire:%d", d.DecisionID)
	item := report.Ambiguous[len(report.Ambiguous)-1]
	if item.DecisionID != d.DecisionID || item.Coordinate != coordinate {
		b.t.Errorf("item: %+v", item)
	}
	contains(b.t, item.Error, coordinate, "spool")
	b.expect(d, ledger.StatusApproved, ledger.ClaimDispatching)
	made := slices.DeleteFunc(b.slots(), func(s string) bool { return slices.Contains(before, s) })
	if len(made) != 1 {
		b.t.Fatalf("slots: %v", made)
	}
	return d, made[0]
}

// deliverBusy makes a pass during which, from the provider's yes on, another process holds the ledger's write lock.
func (b *bench) deliverBusy(also func()) (Report, error) {
	b.t.Helper()
	release := func() {}
	defer func() { release() }()
	return b.Deliver(b.t.Context(), Options{Step: func(s Step, _ Item) {
		if s == AfterSend {
			release = b.writeLock()
			also()
		}
	}})
}

// own holds a slot's lock.
func (b *bench) own(slot string) (free func()) {
	b.t.Helper()
	lock := newFlock(slot, os.O_RDWR)
	if ok, err := lock.TryLock(); !ok || err != nil {
		b.t.Fatal(ok, err)
	}
	return func() {
		if err := lock.Close(); err != nil {
			b.t.Error(err)
		}
	}
}

func (b *bench) slots() []string {
	b.t.Helper()
	out, err := filepath.Glob(filepath.Join(b.place.spool(), "*"))
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func TestAReceiptThatTheLedgerCannotTakeIsSpooledAndReconciled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d, slot := b.spoolOne("a")
	if info, err := os.Stat(slot); err != nil || info.Size() != slotSize {
		t.Errorf("the slot has %d bytes, want %d: written in place", info.Size(), slotSize)
	}
	if token := b.token(d); bytes.Contains(read(t, slot), []byte(token)) {
		t.Error("the claim's token is in the spool")
	}
	report := b.deliver(Options{}) // a pass recovers first
	b.expectItems("delivered", report.Delivered, d)
	b.expectItems("ambiguous", report.Ambiguous)
	s := b.expect(d, ledger.StatusSent, ledger.ClaimDelivered)
	if want := fmt.Sprintf("wire:%d", d.DecisionID); s.Delivery.Coordinate != want {
		t.Errorf("coordinate %q, want %q", s.Delivery.Coordinate, want)
	}
	b.expectWire(d)
	if left := b.files(); len(left) != 0 {
		t.Errorf("files left: %v", left)
	}
}

func (b *bench) token(d ledger.Decided) string {
	b.t.Helper()
	db, err := sql.Open("sqlite", "file:"+b.path+"?mode=ro")
	if err != nil {
		b.t.Fatal(err)
	}
	defer db.Close()
	var token string
	if err := db.QueryRowContext(b.t.Context(), `SELECT token FROM obligation_delivery_claims WHERE decision_id = $1`, d.DecisionID).Scan(&token); err != nil {
		b.t.Fatal(err)
	}
	return token
}

func TestASpooledReceiptIsTakenAlsoAfterItsClaimBecameUnknown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d, slot := b.spoolOne("a")
	aside := slot + ".elsewhere"
	if err := os.Rename(slot, aside); err != nil {
		t.Fatal(err)
	}
	b.expectItems("unknown", b.recoverAll().Unknown, d)
	if err := os.Rename(aside, slot); err != nil {
		t.Fatal(err)
	}
	b.expectItems("confirmed", b.recoverAll().Confirmed, d)
	shown := b.expect(d, ledger.StatusSent, ledger.ClaimDelivered)
	// The record named the worker that found the receipt instead of the one that got it from the provider.
	spooler, _, _ := strings.Cut(filepath.Base(slot), "-1.slot")
	if detail := string(shown.Audit[len(shown.Audit)-1].Detail); !strings.Contains(detail, "spooled by worker "+spooler) {
		t.Errorf("the audit says %s, want the worker %s", detail, spooler)
	}
	if r := b.recoverAll(); len(r.Confirmed)+len(r.Unknown)+len(r.Bad) != 0 {
		t.Errorf("a second pass did something: %+v", r)
	}
}

func TestTwoPassesMayTakeTheSameReceipt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d, slot := b.spoolOne("a")
	copied := strings.TrimSuffix(slot, slotSuffix) + "0" + slotSuffix // as the other pass has read it
	if err := os.WriteFile(copied, read(t, slot), 0o600); err != nil {
		t.Fatal(err)
	}
	r := b.recoverAll()
	b.expectItems("confirmed", r.Confirmed, d, d)
	if len(r.Bad) != 0 || events(b.show(d), "delivered") != 1 {
		t.Errorf("%+v", r)
	}
}

// forged is a line that is whole, but not by the claim's holder.
func forged(t *testing.T, line []byte, change func(*sealed)) []byte {
	t.Helper()
	s, err := decode(bytes.TrimRight(line, " "))
	if err != nil {
		t.Fatal(err)
	}
	change(&s)
	text, err := canonical(s)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return fmt.Appendf(nil, "%s %s\n", hex.EncodeToString(sum[:]), text)
}

// damages make what must not be believed out of a slot that is genuine.
func damages(t *testing.T, line []byte) map[string][]byte {
	change := func(with func(*sealed)) []byte { return forged(t, line, with) }
	flipped := slices.Clone(line)
	flipped[200] ^= 1
	sum := sha256.Sum256([]byte("hello"))
	return map[string][]byte{
		"cut":                 line[:100],
		"cut in its slot":     append(slices.Clone(line[:100]), padding[100:]...),
		"flipped bit":         flipped,
		"forged coordinate":   change(func(s *sealed) { s.Coordinate = "made-up" }),
		"altered, it says":    change(func(s *sealed) { s.Altered = true }),
		"no code":             change(func(s *sealed) { s.MAC = "" }),
		"code of other token": change(func(s *sealed) { s.MAC = hex.EncodeToString(must(s.authenticate("guessed"))) }),
		"other decision":      change(func(s *sealed) { s.DecisionID++ }),
		"no such decision":    change(func(s *sealed) { s.DecisionID = 1 << 40 }),
		"other ledger":        change(func(s *sealed) { s.LedgerID = "x" }),
		"other schema":        change(func(s *sealed) { s.Schema = "countersign.spool/v2" }),
		"no JSON":             []byte(hex.EncodeToString(sum[:]) + " hello\n"),
		"words":               []byte("sent, believe me\n"),
		"NULs":                make([]byte, slotSize),
		"too long":            append(slices.Clone(line), ' '),
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestSlotsThatCannotBeBelievedAreSetAsideOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d, slot := b.spoolOne("a")
	good, _ := b.spoolOne("b")
	bad := damages(t, read(t, slot))
	for name, content := range bad { // they come before the good one
		if err := os.WriteFile(filepath.Join(b.place.spool(), name+slotSuffix), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(slot); err != nil {
		t.Fatal(err)
	}
	r := b.recoverAll()
	b.expectItems("confirmed", r.Confirmed, good) // they stop nothing
	b.expect(d, ledger.StatusApproved, ledger.ClaimUnknown)
	if len(r.Bad) != len(bad) {
		t.Errorf("%d are reported, want %d", len(r.Bad), len(bad))
	}
	for _, item := range r.Bad {
		if strings.Contains(item.Error, "other ledger.slot") {
			contains(t, item.Error, "it belongs to another ledger")
		}
		if item.ObligationID != 0 || item.Coordinate != "" {
			t.Errorf("something is believed: %+v", item)
		}
	}
	for name, content := range bad {
		if !bytes.Equal(read(t, filepath.Join(b.place.spool(), name+slotSuffix+badSuffix)), content) {
			t.Errorf("%s was not kept as it was", name)
		}
	}
	if again := b.recoverAll(); len(again.Bad) != 0 {
		t.Errorf("reported twice: %+v", again.Bad)
	}
}

func TestAProvedReceiptThatTheLedgerRefusesIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d, slot := b.spoolOne("a")
	aside := slot + ".elsewhere"
	if err := os.Rename(slot, aside); err != nil {
		t.Fatal(err)
	}
	b.recoverAll()
	if _, err := b.l.Reconcile(t.Context(), b.op, d.ObligationID, "found by hand", "asked them"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, slot); err != nil {
		t.Fatal(err)
	}
	report := b.deliver(Options{})
	b.expectItems("ambiguous", report.Ambiguous, d)
	item := report.Ambiguous[0]
	contains(t, item.Error, fmt.Sprintf("wire:%d", d.DecisionID), "found by hand")
	if s := b.show(d); s.Delivery.Coordinate != "found by hand" {
		t.Errorf("the first record did not stand: %+v", s.Delivery)
	}
}

func TestWhatIsNoSlotFileIsReportedAndStopsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := b.place.open(); err != nil {
		t.Fatal(err)
	}
	spool := b.place.spool()
	outside := filepath.Join(filepath.Dir(b.path), "outside")
	err := errors.Join(
		os.WriteFile(outside, []byte("precious"), 0o600),
		os.Symlink(outside, filepath.Join(spool, "link.slot")),
		os.Mkdir(filepath.Join(spool, "room.slot"), 0o700),
		os.WriteFile(filepath.Join(spool, "empty.slot"), nil, 0o600),
		os.WriteFile(filepath.Join(spool, "reserved.slot"), padding, 0o600),
		os.WriteFile(filepath.Join(spool, "notes.txt"), []byte("x"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	d := b.approve("a", "x")
	report := b.deliver(Options{})
	b.expectItems("delivered", report.Delivered, d)
	if len(report.Ambiguous) != 2 {
		t.Errorf("%+v", report.Ambiguous)
	}
	want := []string{"spool/link.slot.bad", "spool/notes.txt", "spool/room.slot"}
	if left := b.files(); !slices.Equal(left, want) {
		t.Errorf("left: %v, want %v", left, want)
	}
	if string(read(t, outside)) != "precious" {
		t.Error("a link was followed")
	}
}

func TestASlotIsOfItsLivingOwner(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w, err := b.place.register()
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.reserve(new(atomic.Int64))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.write([]byte("half a rec")); err != nil { // in the middle of its write
		t.Fatal(err)
	}
	if r := b.recoverAll(); len(r.Bad) != 0 || !s.usable() {
		t.Errorf("the slot of a living worker was touched: %+v", r)
	}
	if err := errors.Join(s.remove(), w.close()); err != nil {
		t.Fatal(err)
	}
}

func TestASlotThatWasRemovedIsReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d := b.approve("a", "x")
	_, err := b.deliverBusy(func() {
		for _, slot := range b.slots() {
			if err := os.Remove(slot); err != nil {
				t.Error(err)
			}
		}
	})
	if !errors.Is(err, ledger.ErrBusy) {
		t.Fatalf("err: %v", err)
	}
	b.expectItems("confirmed", b.recoverAll().Confirmed, d)
}

// Whatever happens to the spool, no dispatch begins without a slot that will be found.
func TestEveryDispatchHasASlot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.approve("a", "x")
	b.approve("a", "y")
	begun := 0
	b.deliver(Options{Step: func(s Step, _ Item) {
		slots := b.slots()
		switch {
		case s == AfterBegin:
			begun++
			if len(slots) != 1 || !bytes.Equal(read(t, slots[0]), padding) {
				t.Errorf("message %d: slots %v", begun, slots)
			}
		case s == AfterComplete && len(slots) == 1:
			if err := os.Remove(slots[0]); err != nil {
				t.Error(err)
			}
		}
	}})
	if begun != 2 {
		t.Errorf("%d dispatches", begun)
	}
}

func TestAReceiptFitsOrItsDetailIsCut(t *testing.T) {
	t.Parallel()
	s := spooled{Schema: spoolSchema, LedgerID: "l", DecisionID: 1 << 62, Coordinate: "c \"<\u2028\xff", Detail: strings.Repeat("ü\x01", slotSize)}
	line, err := s.line("token")
	if err != nil || len(line) > slotSize {
		t.Fatalf("%d bytes, %v", len(line), err)
	}
	out, err := decode(line)
	if err != nil || !out.authentic("token") || out.authentic("") || out.authentic("other") {
		t.Fatalf("%+v, %v", out, err)
	}
	if out.DecisionID != 1<<62 || out.Coordinate != "c \"<\u2028\ufffd" || !strings.HasPrefix(s.Detail, out.Detail) || out.Detail == "" {
		t.Errorf("%+v", out)
	}
	s.Coordinate = strings.Repeat("c", slotSize)
	if _, err := s.line("token"); !errors.Is(err, errTooLong) {
		t.Errorf("a coordinate was cut: %v", err)
	}
}

func TestEveryFlippedBitIsNoticed(t *testing.T) {
	t.Parallel()
	line, err := spooled{Schema: spoolSchema, LedgerID: "l", DecisionID: 7, Coordinate: "c", Detail: "d"}.line("token")
	if err != nil {
		t.Fatal(err)
	}
	for i := range line {
		for bit := range 8 {
			bad := slices.Clone(line)
			bad[i] ^= 1 << bit
			if _, err := decode(bad); err == nil {
				t.Fatalf("bit %d of byte %d: believed", bit, i)
			}
		}
		if _, err := decode(line[:i]); err == nil {
			t.Fatalf("cut after %d bytes: believed", i)
		}
	}
}
