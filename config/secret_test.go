package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"countersign/config"

	"github.com/BurntSushi/toml"
)

func secret(t *testing.T, s string) config.Secret {
	t.Helper()
	parsed, err := config.ParseSecret(s)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func secretFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSecretsAreReadWhenUsed(t *testing.T) {
	t.Setenv("COUNTERSIGN_TEST_PASSWORD", "from the environment")
	files := map[string]string{
		"pw": "pw", "pw\n": "pw", "pw\r\n": "pw", "pw\n\n": "pw\n", " pw ": " pw ",
		strings.Repeat("x", 64<<10): strings.Repeat("x", 64<<10),
	}
	tests := map[string]string{"": "", "literal": "literal", "env:COUNTERSIGN_TEST_PASSWORD": "from the environment", "fileless": "fileless"}
	for content, want := range files {
		tests["file:"+secretFile(t, content)] = want
	}
	for given, want := range tests {
		if got, err := secret(t, given).Resolve(); err != nil || got != want {
			t.Errorf("%.60q resolves to %.60q, %v", given, got, err)
		}
	}

	path := filepath.Join(t.TempDir(), "later")
	later := secret(t, "file:"+path)
	if _, err := later.Resolve(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a missing file gives %v", err)
	}
	if err := os.WriteFile(path, []byte("now"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := later.Resolve(); err != nil || got != "now" {
		t.Errorf("the file that is there now gives %q, %v", got, err)
	}
}

func TestSecretsThatCantBeRead(t *testing.T) {
	t.Setenv("COUNTERSIGN_TEST_EMPTY", "")
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"env:COUNTERSIGN_TEST_EMPTY":                           "secret env:COUNTERSIGN_TEST_EMPTY: the environment variable is not set, or empty",
		"env:COUNTERSIGN_TEST_UNSET":                           "secret env:COUNTERSIGN_TEST_UNSET: the environment variable is not set, or empty",
		"file:" + filepath.Join(dir, "none"):                   "no such file",
		"file:" + dir:                                          "is a directory",
		"file:" + os.DevNull:                                   "is not a regular file",
		"file:" + pipe:                                         "is not a regular file", // and doesn't wait for a writer
		"file:" + secretFile(t, "\n"):                          "the file is empty",
		"file:" + secretFile(t, strings.Repeat("x", 64<<10+1)): "is larger than 65536 bytes",
	}
	for given, want := range tests {
		got, err := secret(t, given).Resolve()
		if err == nil || got != "" || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), strings.TrimPrefix(given, "env:")) {
			t.Errorf("%s resolves to %q, %v; want %q", given, got, err, want)
		}
	}
}

// hidden holds a secret where fmt can't call its methods.
type hidden struct{ inner config.Secret }

func TestSecretsAreNeverShown(t *testing.T) {
	const value = "hunter2-värde"
	t.Setenv("COUNTERSIGN_TEST_PASSWORD", value)
	file := secretFile(t, value)
	for _, given := range []string{value, "env:COUNTERSIGN_TEST_PASSWORD", "file:" + file} {
		s := secret(t, given)
		if got, err := s.Resolve(); err != nil || got != value {
			t.Fatalf("resolves to %q, %v", got, err)
		}
		smtp := config.SMTP{Password: s}
		var out bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t"} {
			for _, v := range []any{s, &s, smtp, &smtp, hidden{s}, &hidden{s}, []config.Secret{s}, map[string]config.Secret{"k": s}, fmt.Errorf("failed: %v", s)} {
				fmt.Fprintf(&out, verb+"\n", v)
			}
		}
		logger := slog.New(slog.NewTextHandler(&out, nil))
		logger.Info("x", "secret", s, "pointer", &s, "smtp", smtp, "hidden", hidden{s})
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "secret", s, "smtp", smtp)
		for _, v := range []any{s, smtp, map[string]any{"s": s}} {
			if err := json.NewEncoder(&out).Encode(v); err != nil {
				t.Fatal(err)
			}
		}
		if err := toml.NewEncoder(&out).Encode(smtp); err != nil {
			t.Fatal(err)
		}
		for _, leak := range []string{value, "hunter2", fmt.Sprintf("%x", value), fmt.Sprintf("%X", value)} {
			if strings.Contains(out.String(), leak) {
				t.Errorf("%q shows its value as %q:\n%s", given, leak, out.String())
			}
		}
	}
	if got := fmt.Sprint(secret(t, "env:COUNTERSIGN_TEST_PASSWORD"), " ", secret(t, value), " ", config.Secret{}); got != "env:COUNTERSIGN_TEST_PASSWORD (secret) " {
		t.Errorf("secrets print as %q", got)
	}
}

func TestBadSecretsAreNotRepeated(t *testing.T) {
	for _, given := range []string{"file:hunter2", "env:hunter 2", "env:", "ENV:hunter2", "File:/hunter2"} {
		if s, err := config.ParseSecret(given); err == nil || !s.IsZero() || strings.Contains(err.Error(), "hunter") {
			t.Errorf("ParseSecret(%q) = %v, %v", given, s, err)
		}
	}
}

func TestKindsOfSecret(t *testing.T) {
	tests := []struct {
		given         string
		zero, literal bool
	}{{"", true, false}, {"env:X", false, false}, {"file:/x", false, false}, {"x", false, true}, {"12345:AAE", false, true}}
	for _, tt := range tests {
		if s := secret(t, tt.given); s.IsZero() != tt.zero || s.IsLiteral() != tt.literal {
			t.Errorf("%q: zero %v, literal %v", tt.given, s.IsZero(), s.IsLiteral())
		}
	}
}
