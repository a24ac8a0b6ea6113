package schema

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// roomProbe is what is asked for: more than the 32 KiB by which SQLite's shared-memory file grows at once (WALINDEX_PGSZ in
// https://www.sqlite.org/walformat.html), with the first pages of a write-ahead log.
const roomProbe = 64 << 10

// NoRoom tells whether a failed write to the ledger at path was one for want of room: it returns syscall.ENOSPC (no block or no file
// is left), syscall.EDQUOT (a quota) or syscall.EFBIG (a limit of this process), else nil.
//
// SQLite says SQLITE_FULL of some of these cases only: of the others, as of the shared-memory file that cannot grow when a ledger is
// opened, it says SQLITE_IOERR, and the driver does not hand on the system's error number. So the same is asked of the system once
// more, with a file of our own beside the ledger, which is removed again.
func NoRoom(path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".countersign-room-*")
	if err == nil {
		defer os.Remove(file.Name())
		err = errors.Join(fillUp(file), file.Close())
	}
	for _, none := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, none) {
			return none
		}
	}
	return nil
}

// fillUp writes what no file system can compress away, and syncs it: some find out only then that there is no room.
func fillUp(file *os.File) error {
	var noise [roomProbe]byte
	if _, err := rand.Read(noise[:]); err != nil {
		return err
	}
	if _, err := file.Write(noise[:]); err != nil {
		return err
	}
	return file.Sync()
}
