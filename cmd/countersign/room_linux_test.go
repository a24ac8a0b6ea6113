package main

import (
	"os/exec"
	"strings"
	"testing"
)

// onFullDisk copies the desk in $1 to a file system of 2 MiB at $2, fills that, and then makes room again.
const onFullDisk = `
mount -t tmpfs -o size=2m,mode=700 none "$2"
cp "$1"/countersign.* "$2"
cd "$2"
mkdir outbox
export COUNTERSIGN_CONFIG="$2/countersign.toml"
dd if=/dev/zero of=filler bs=4096 2>/dev/null && exit 90
for command in list "approve 1 --epoch 1" deliver; do
	code=0
	countersign $command --json || code=$?
	test $code = 1
done
rm filler
countersign list
ls -A
`

// A disk that was full when the ledger was opened used to be told as "disk I/O error", without a path.
func TestAFullDiskIsNamedWhenTheLedgerIsOpened(t *testing.T) {
	if out, err := exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "none", t.TempDir()).CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted here: %v, %s", err, out)
	}
	d := newTestDesk(t)
	d.file("Hello", "a")
	full := t.TempDir()
	cmd := exec.Command("unshare", "-rm", "sh", "-eu", "-c", onFullDisk, "sh", d.dir, full)
	cmd.Env = append(cmd.Environ(), "GORACE="+noExitSleep, operatorTokenEnv+"="+d.variables[operatorTokenEnv])
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := string(out)
	if n := strings.Count(got, `"kind":"disk_full"`); n != 3 || strings.Count(got, full+"/countersign.db") != 3 || strings.Contains(got, "I/O error") {
		t.Errorf("%d are told as a full disk:\n%s", n, got)
	}
	if !strings.Contains(got, "draft for acme") || strings.Contains(got, "room-") {
		t.Errorf("with room again:\n%s", got)
	}
}
