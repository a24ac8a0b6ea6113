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

// spoolOne approves and sends a message whose receipt the ledger can't take, and returns its slot.
func (b *bench) spoolOne(channel string) (ledger.Decided, string) {
	b.t.Helper()
	d := b.approve(channel, "x")
	before := b.slots()
	var release func()
	report, err := b.Deliver(b.t.Context(), Options{Step: func(s Step, _ Item) {
		if s == AfterSend {
			release = b.writeLock()
		}
	}})
	release()
	if !errors.Is(err, ledger.ErrBusy) {
		b.t.Fatalf("err: %v", err)
	}
	b.expectItems("ambiguous", report.Ambiguous, d)
	coordinate := fmt.Sprintf("wire:%d", d.DecisionID)
	if got := report.Ambiguous[0]; got.Coordinate != coordinate {
		b.t.Errorf("item: %+v", got)
	}
	contains(b.t, report.Ambiguous[0].Error, coordinate, "spool")
	b.expect(d, ledger.StatusApproved, ledger.ClaimDispatching)
	made := slices.DeleteFunc(b.slots(), func(s string) bool { return slices.Contains(before, s) })
	if len(made) != 1 {
		b.t.Fatalf("slots: %v", made)
	}
	return d, made[0]
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
	b.expect(d, ledger.StatusSent, ledger.ClaimDelivered)
	if r := b.recoverAll(); len(r.Confirmed)+len(r.Unknown)+len(r.Bad) != 0 {
		t.Errorf("a second pass did something: %+v", r)
	}
}

func TestTwoPassesMayTakeTheSameReceipt(t *testing.T) {
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

func TestSlotsThatCannotBeBelievedAreSetAsideOnce(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, line []byte) []byte{
		"cut":             func(_ *testing.T, line []byte) []byte { return line[:100] },
		"cut in the slot": func(_ *testing.T, line []byte) []byte { return append(slices.Clone(line[:100]), line[len(line)-500:]...) },
		"a flipped bit": func(_ *testing.T, line []byte) []byte {
			out := slices.Clone(line)
			out[200] ^= 1
			return out
		},
		"a forged coordinate": func(t *testing.T, line []byte) []byte {
			return forged(t, line, func(s *sealed) { s.Coordinate = "made-up" })
		},
		"no code": func(t *testing.T, line []byte) []byte { return forged(t, line, func(s *sealed) { s.MAC = "" }) },
		"the code of another token": func(t *testing.T, line []byte) []byte {
			return forged(t, line, func(s *sealed) {
				code, err := s.authenticate("guessed")
				if err != nil {
					t.Fatal(err)
				}
				s.MAC = hex.EncodeToString(code)
			})
		},
		"another decision": func(t *testing.T, line []byte) []byte { return forged(t, line, func(s *sealed) { s.DecisionID++ }) },
		"another ledger":   func(t *testing.T, line []byte) []byte { return forged(t, line, func(s *sealed) { s.LedgerID = "x" }) },
		"another schema":   func(t *testing.T, line []byte) []byte { return forged(t, line, func(s *sealed) { s.Schema = "v2" }) },
		"not JSON": func(*testing.T, []byte) []byte {
			sum := sha256.Sum256([]byte("hello"))
			return []byte(hex.EncodeToString(sum[:]) + " hello\n")
		},
		"words":    func(*testing.T, []byte) []byte { return []byte("sent, believe me\n") },
		"NULs":     func(*testing.T, []byte) []byte { return make([]byte, 4096) },
		"too long": func(_ *testing.T, line []byte) []byte { return append(slices.Clone(line), padding...) },
	} {
		t.Run(name, func(t *testing.T) { checkDistrust(t, damage) })
	}
}

func checkDistrust(t *testing.T, damage func(*testing.T, []byte) []byte) {
	b := newBench(t)
	d, slot := b.spoolOne("a")
	good, goodSlot := b.spoolOneBeside("b", slot)
	if goodSlot < slot { // the bad one comes first
		goodSlot, slot = slot, goodSlot
		good, d = d, good
	}
	bad := damage(t, read(t, slot))
	if err := os.WriteFile(slot, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	r := b.recoverAll()
	b.expectItems("confirmed", r.Confirmed, good) // it stops nothing
	b.expectItems("unknown", r.Unknown, d)
	if len(r.Bad) != 1 || r.Bad[0].ObligationID != 0 || r.Bad[0].Coordinate != "" {
		t.Errorf("bad: %+v", r.Bad)
	}
	if got := read(t, slot+".bad"); !bytes.Equal(got, bad) {
		t.Error("the slot was not kept as it was")
	}
	b.expect(d, ledger.StatusApproved, ledger.ClaimUnknown)
	if again := b.recoverAll(); len(again.Bad) != 0 {
		t.Errorf("reported twice: %+v", again.Bad)
	}
}

// spoolOneBeside spools another message while the first slot is out of recovery's sight.
func (b *bench) spoolOneBeside(channel, slot string) (ledger.Decided, string) {
	b.t.Helper()
	held := newFlock(slot, os.O_RDWR) // as its living owner would
	if ok, err := held.TryLock(); !ok || err != nil {
		b.t.Fatal(ok, err)
	}
	defer held.Close()
	d, other := b.spoolOneUnrecovered(channel, slot)
	return d, other
}

func (b *bench) spoolOneUnrecovered(channel, slot string) (ledger.Decided, string) {
	b.t.Helper()
	d := b.approve(channel, "x")
	var release func()
	_, err := b.Deliver(b.t.Context(), Options{Step: func(s Step, _ Item) {
		if s == AfterSend {
			release = b.writeLock()
		}
	}})
	release()
	if !errors.Is(err, ledger.ErrBusy) {
		b.t.Fatalf("err: %v", err)
	}
	for _, s := range b.slots() {
		if s != slot {
			return d, s
		}
	}
	b.t.Fatal("no slot")
	return d, ""
}

func TestAProvedReceiptThatTheLedgerRefusesIsNamed(t *testing.T) {
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
	b := newBench(t)
	d := b.approve("a", "x")
	var release func()
	_, err := b.Deliver(t.Context(), Options{Step: func(s Step, _ Item) {
		if s != AfterSend {
			return
		}
		release = b.writeLock()
		for _, slot := range b.slots() {
			if err := os.Remove(slot); err != nil {
				t.Error(err)
			}
		}
	}})
	release()
	if !errors.Is(err, ledger.ErrBusy) {
		t.Fatalf("err: %v", err)
	}
	b.expectItems("confirmed", b.recoverAll().Confirmed, d)
}

func TestAReceiptFitsOrItsDetailIsCut(t *testing.T) {
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
