package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/config"
)

// home makes an empty working directory and an empty configuration directory, and returns the latter.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	user, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(user, "countersign"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	return user
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFindLooksInOrder(t *testing.T) {
	user := home(t)
	env := map[string]string{}
	find := func(flag string) string {
		t.Helper()
		path, err := config.Find(flag, func(name string) string { return env[name] })
		if err != nil {
			t.Fatal(err)
		}
		return path
	}

	inUser := filepath.Join(user, "countersign", "countersign.toml")
	touch(t, inUser)
	if got := find(""); got != inUser {
		t.Errorf("the user's configuration: %q", got)
	}
	touch(t, "countersign.toml")
	if got := find(""); filepath.Clean(got) != "countersign.toml" {
		t.Errorf("the working directory's: %q", got)
	}
	env[config.EnvVar] = "/etc/none.toml"
	if got := find(""); got != "/etc/none.toml" {
		t.Errorf("the environment's, which doesn't exist: %q", got)
	}
	if got := find("other.toml"); got != "other.toml" {
		t.Errorf("the flag's, which doesn't exist: %q", got)
	}
}

func TestFindSaysWhereItLooked(t *testing.T) {
	user := home(t)
	path, err := config.Find("", func(string) string { return "" })
	var none *config.NotFoundError
	if !errors.As(err, &none) || path != "" {
		t.Fatalf("Find gives %q, %v", path, err)
	}
	for _, want := range []string{"--config", "COUNTERSIGN_CONFIG", "./countersign.toml", filepath.Join(user, "countersign", "countersign.toml"), "`countersign init` makes one"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q doesn't say %q", err, want)
		}
	}
}

// A configuration directory that is a file, or none at all, is no configuration, and no reason to stop.
func TestFindWithoutAConfigurationDirectory(t *testing.T) {
	home(t)
	for _, dir := range []string{os.DevNull, "relative"} {
		t.Setenv("XDG_CONFIG_HOME", dir)
		var none *config.NotFoundError
		if path, err := config.Find("", os.Getenv); !errors.As(err, &none) {
			t.Errorf("XDG_CONFIG_HOME=%s: %q, %v", dir, path, err)
		}
	}
}

// Falling through from a file that can't be read to another would decide with other operators than were meant.
func TestFindTakesWhatItCantRead(t *testing.T) {
	user := home(t)
	touch(t, filepath.Join(user, "countersign", "countersign.toml"))
	if err := os.Symlink("countersign.toml", "countersign.toml"); err != nil { // a loop
		t.Fatal(err)
	}
	path, err := config.Find("", os.Getenv)
	if err != nil || filepath.Clean(path) != "countersign.toml" {
		t.Errorf("Find gives %q, %v", path, err)
	}
	if _, err := config.Load(path); err == nil {
		t.Error("a loop of links was loaded")
	}
}
