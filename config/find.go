package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	// EnvVar names the configuration where no flag does.
	EnvVar = "COUNTERSIGN_CONFIG"

	fileName = "countersign.toml"
)

// NotFoundError says that no configuration was named and none was found.
type NotFoundError struct {
	Looked []string // the files that would have been taken, in this order
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no configuration: neither --config nor %s is set, and there is no %s; `countersign init` makes one",
		EnvVar, strings.Join(e.Looked, " and no "))
}

// Find returns the configuration file to use: flag, the value of --config, if it isn't empty; then the environment's
// COUNTERSIGN_CONFIG; then countersign.toml in the working directory; then countersign/countersign.toml in the user's
// configuration directory (see os.UserConfigDir). A file that was named is returned whether it exists or not, so that a
// typing error never falls through to another file. The error is a *NotFoundError.
func Find(flag string, getenv func(string) string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if named := getenv(EnvVar); named != "" {
		return named, nil
	}
	places := usual()
	for _, place := range places {
		if isThere(place) {
			return place, nil
		}
	}
	return "", &NotFoundError{Looked: places}
}

// isThere takes a file that can't be looked at for the one that was meant: Load says what is wrong with it.
func isThere(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

func usual() []string {
	places := []string{"." + string(filepath.Separator) + fileName}
	if dir, err := os.UserConfigDir(); err == nil {
		places = append(places, filepath.Join(dir, "countersign", fileName))
	}
	return places
}
