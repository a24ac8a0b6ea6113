package sweep

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// workplace is the directory beside a ledger where its workers keep their locks and their spool.
type workplace struct{ root string }

// workplaceOf names the place; it makes nothing. The path has to be the ledger's real one, so that every name of the ledger
// leads to the same locks.
func workplaceOf(ledgerPath string) workplace { return workplace{ledgerPath + ".d"} }

func (w workplace) workers() string      { return filepath.Join(w.root, "workers") }
func (w workplace) destinations() string { return filepath.Join(w.root, "destinations") }
func (w workplace) spool() string        { return filepath.Join(w.root, "spool") }

// open makes what is missing of the directories, and refuses those that others could change.
func (w workplace) open() error {
	made := false
	for _, dir := range []string{w.root, w.workers(), w.destinations(), w.spool()} {
		err := os.Mkdir(dir, dirMode)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("the workers' directory: %w", err)
		}
		made = made || err == nil
		if err := checkDir(dir); err != nil {
			return err
		}
	}
	if !made {
		return nil
	}
	return errors.Join(syncDir(w.root), syncDir(filepath.Dir(w.root))) // the spool has to outlive a power cut
}

func checkDir(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return fmt.Errorf("the workers' directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("the workers' directory %s is no directory (links are not followed); move it away", path)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others can write to the workers' directory %s; run chmod 700 on it", path)
	}
	return nil
}

// list returns the names in one of the rooms, sorted. A missing room is empty.
func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}
