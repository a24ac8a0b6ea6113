package smtp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"countersign/transports"
	"countersign/transports/transporttest"
)

// secure is a configuration with STARTTLS and a password.
func secure(roots *x509.CertPool) func(*Config) {
	return func(c *Config) {
		c.TLS, c.RootCAs = TLSStartTLS, roots
		c.Auth, c.Username = AuthPlain, username
		c.Password = func() (string, error) { return password, nil }
	}
}

// FAULTS 7: nothing after EHLO, no AUTH, no fall-back.
func TestStrippedTLSEndsTheSession(t *testing.T) {
	good, roots, _ := transporttest.ServerTLS(t, "127.0.0.1")
	other, otherRoots, _ := transporttest.ServerTLS(t, "mail.example.org", "10.0.0.1")
	old := good.Clone()
	old.MaxVersion = tls.VersionTLS11
	starttls, plain := []string{"STARTTLS", "AUTH PLAIN"}, []string{"AUTH PLAIN"}
	for name, c := range map[string]struct {
		server *transporttest.SMTPServer
		roots  *x509.CertPool
		code   string
	}{
		"not offered":        {&transporttest.SMTPServer{Extensions: plain}, roots, ""},
		"454":                {&transporttest.SMTPServer{Extensions: starttls, Steps: map[string]step{"STARTTLS": {Say: "454 4.7.0 not now\r\n"}}}, roots, "454"},
		"no answer":          {&transporttest.SMTPServer{Extensions: starttls, Steps: map[string]step{"STARTTLS": {Then: transporttest.Cut}}}, roots, ""},
		"half an answer":     {&transporttest.SMTPServer{Extensions: starttls, Steps: map[string]step{"STARTTLS": {Say: "220 go", Then: transporttest.Cut}}}, roots, ""},
		"another name":       {&transporttest.SMTPServer{Extensions: starttls, TLS: other}, otherRoots, ""},
		"unknown issuer":     {&transporttest.SMTPServer{Extensions: starttls, TLS: good}, otherRoots, ""},
		"the system's roots": {&transporttest.SMTPServer{Extensions: starttls, TLS: good}, nil, ""},
		"old TLS":            {&transporttest.SMTPServer{Extensions: starttls, TLS: old}, roots, ""},
		"plain bytes along":  {&transporttest.SMTPServer{Extensions: starttls, TLS: good, Steps: map[string]step{"STARTTLS": {Say: "220 go\r\n250-injected\r\n250 AUTH PLAIN\r\n"}}}, roots, ""},
		"half a line along":  {&transporttest.SMTPServer{Extensions: starttls, TLS: good, Steps: map[string]step{"STARTTLS": {Say: "220 go\r\n2"}}}, roots, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.server.Start(t)
			_, err := newTransport(t, config(c.server, secure(c.roots))).Connect(t.Context())
			if stage, code := stageAndCode(err); stage != stageTLS || code != c.code {
				t.Errorf("stage %q code %q, want tls %q: %v", stage, code, c.code, err)
			}
			c.server.Wait()
			conn := c.server.Conns()[0]
			if verbs := strings.Join(conn.Verbs, " "); verbs != "EHLO" && verbs != "EHLO STARTTLS" {
				t.Errorf("the server was told %q", conn.Verbs)
			}
		})
	}
}

func TestInjectedBytesAreNamed(t *testing.T) {
	good, roots, _ := transporttest.ServerTLS(t, "127.0.0.1")
	server := (&transporttest.SMTPServer{Extensions: []string{"STARTTLS"}, TLS: good, Steps: map[string]step{
		"STARTTLS": {Say: "220 go\r\n250 x\r\n"},
	}}).Start(t)
	_, err := newTransport(t, config(server, secure(roots))).Connect(t.Context())
	if !errors.Is(err, errPlainBytes) {
		t.Errorf("got %v", err)
	}
}

// What EHLO offered in plain text is forgotten after STARTTLS.
func TestExtensionsAreLearntAnew(t *testing.T) {
	good, roots, _ := transporttest.ServerTLS(t, "127.0.0.1")
	server := (&transporttest.SMTPServer{Extensions: []string{"STARTTLS"}, TLS: good, Steps: map[string]step{
		"EHLO 1": {Say: "250-x\r\n250-STARTTLS\r\n250 AUTH PLAIN\r\n"},
	}}).Start(t)
	_, err := newTransport(t, config(server, secure(roots))).Connect(t.Context())
	if stage, _ := stageAndCode(err); stage != stageAuth {
		t.Errorf("AUTH that was offered in plain text only: %v", err)
	}
	server.Wait()
	if verbs := strings.Join(server.Conns()[0].Verbs, " "); verbs != "EHLO STARTTLS EHLO" {
		t.Errorf("the server was told %s", verbs)
	}
}

func TestImplicitTLSAndCAFile(t *testing.T) {
	good, _, pem := transporttest.ServerTLS(t, "127.0.0.1")
	server := (&transporttest.SMTPServer{Implicit: true, TLS: good}).Start(t)
	caFile := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(caFile, pem, 0o600); err != nil {
		t.Fatal(err)
	}
	tr := newTransport(t, config(server, func(c *Config) { c.TLS, c.CAFile = TLSImplicit, caFile }))
	r, err := sendOne(t.Context(), tr, claimed(offer()))
	if err != nil || !strings.Contains(r.Detail, "TLS 1.3") {
		t.Errorf("%+v, %v", r, err)
	}
	if verbs := strings.Join(server.Conns()[0].Verbs[:2], " "); verbs != "EHLO MAIL" {
		t.Errorf("the server was told %s", verbs)
	}
}

func TestImplicitTLSToAPlainServer(t *testing.T) {
	server := (&transporttest.SMTPServer{}).Start(t)
	_, err := newTransport(t, config(server, func(c *Config) { c.TLS = TLSImplicit })).Connect(t.Context())
	if stage, _ := stageAndCode(err); stage != stageTLS {
		t.Errorf("got %v", err)
	}
}

// elsewhere makes a connection look like one to another machine.
type elsewhere struct{ net.Conn }

func (elsewhere) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 25} }

func toElsewhere(tr *Transport) *Transport {
	dial := tr.dial
	tr.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return elsewhere{conn}, err
	}
	return tr
}

// Plain text goes to loopback, or where it was allowed, and a password never.
func TestPlaintext(t *testing.T) {
	withPassword := func(c *Config) { c.Auth, c.Username, c.Password = AuthPlain, username, thePassword }
	allowed := func(c *Config) { c.AllowPlaintext = true }
	for name, c := range map[string]struct {
		change []func(*Config)
		far    bool
		want   error
	}{
		"loopback":                      {nil, false, nil},
		"loopback, password":            {[]func(*Config){withPassword}, false, nil},
		"far":                           {nil, true, errPlaintext},
		"far, allowed":                  {[]func(*Config){allowed}, true, nil},
		"far, password":                 {[]func(*Config){withPassword}, true, errPlainAuth},
		"far, password, and allowed":    {[]func(*Config){withPassword, allowed}, true, errPlainAuth},
		"loopback, password, forbidden": {[]func(*Config){withPassword, allowed}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			server := (&transporttest.SMTPServer{Extensions: []string{"AUTH PLAIN"}}).Start(t)
			tr := newTransport(t, config(server, c.change...))
			if c.far {
				toElsewhere(tr)
			}
			s, err := tr.Connect(t.Context())
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if err == nil {
				_ = s.Close()
				return
			}
			for _, conn := range server.Conns() {
				if conn.Raw != "" {
					t.Errorf("the server was told %q", conn.Raw)
				}
			}
		})
	}
}

func thePassword() (string, error) { return password, nil }

func TestAuthMechanisms(t *testing.T) {
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for auth, c := range map[string]struct {
		steps map[string]step
		want  string
	}{
		AuthPlain: {nil, "AUTH PLAIN " + b64("\x00"+username+"\x00"+password) + "\r\n"},
		AuthLogin: {
			map[string]step{"AUTH": {Say: "334 " + b64("Password:") + "\r\n"}},
			"AUTH LOGIN " + b64(username) + "\r\n" + b64(password) + "\r\n",
		},
		AuthXOAuth2: {nil, "AUTH XOAUTH2 " + b64("user="+username+"\x01auth=Bearer "+password+"\x01\x01") + "\r\n"},
	} {
		t.Run(auth, func(t *testing.T) {
			server := (&transporttest.SMTPServer{Extensions: []string{"AUTH PLAIN LOGIN XOAUTH2"}, Steps: c.steps}).Start(t)
			tr := newTransport(t, config(server, func(cfg *Config) {
				cfg.Auth, cfg.Username, cfg.Password = auth, username, thePassword
			}))
			if err := connect(t, tr).Close(); err != nil {
				t.Fatal(err)
			}
			server.Wait()
			if raw := server.Conns()[0].Raw; !strings.Contains(raw, c.want) {
				t.Errorf("the server was told\n%s\nwant\n%s", raw, c.want)
			}
		})
	}
}

// A token that doesn't fit the command line (RFC 5321 section 4.5.3.1.4) follows it.
func TestLongToken(t *testing.T) {
	token := strings.Repeat("tok3n.", 300)
	server := (&transporttest.SMTPServer{Extensions: []string{"AUTH XOAUTH2"}, Steps: map[string]step{
		"AUTH": {Say: "334 \r\n"},
	}}).Start(t)
	s := connect(t, newTransport(t, config(server, func(c *Config) {
		c.Auth, c.Username = AuthXOAuth2, username
		c.Password = func() (string, error) { return token, nil }
	})))
	_ = s.Close()
	server.Wait()
	want := "AUTH XOAUTH2\r\n" + base64.StdEncoding.EncodeToString([]byte("user="+username+"\x01auth=Bearer "+token+"\x01\x01")) + "\r\n"
	if raw := server.Conns()[0].Raw; !strings.Contains(raw, want) {
		t.Errorf("the server was told\n%s", raw)
	}
}

// The failure of XOAUTH2 comes in a challenge, which is answered with nothing.
func TestXOAuth2Refused(t *testing.T) {
	server := (&transporttest.SMTPServer{Extensions: []string{"AUTH XOAUTH2"}, Steps: map[string]step{
		"AUTH":       {Say: "334 eyJzdGF0dXMiOiI0MDEifQ==\r\n"},
		"AUTHLINE 1": {Say: "535 5.7.8 not accepted\r\n"},
	}}).Start(t)
	_, err := newTransport(t, config(server, func(c *Config) {
		c.Auth, c.Username, c.Password = AuthXOAuth2, username, thePassword
	})).Connect(t.Context())
	if stage, code := stageAndCode(err); stage != stageAuth || code != "535" || !strings.Contains(err.Error(), "5.7.8 not accepted") {
		t.Errorf("got %v", err)
	}
	server.Wait()
	if conn := server.Conns()[0]; slices.Contains(conn.Verbs, "MAIL") {
		t.Errorf("went on after a refusal:\n%s", conn.Raw)
	}
}

func TestPasswordTrouble(t *testing.T) {
	unset := errors.New("SMTP_PASSWORD is not set")
	for name, f := range map[string]func() (string, error){
		"unset":       func() (string, error) { return "", unset },
		"empty":       func() (string, error) { return "", nil },
		"line end":    func() (string, error) { return password + "\n", nil },
		"zero octets": func() (string, error) { return "a\x00b\x00" + password, nil },
	} {
		server := (&transporttest.SMTPServer{Extensions: []string{"AUTH PLAIN"}}).Start(t)
		tr := newTransport(t, config(server, func(c *Config) { c.Auth, c.Username, c.Password = AuthPlain, username, f }))
		_, err := tr.Connect(t.Context())
		var p *transports.PrepareError
		if !errors.As(err, &p) || p.Stage != stageAuth || strings.Contains(err.Error(), password) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "unset" && !errors.Is(err, unset) {
			t.Errorf("the reason is lost: %v", err)
		}
		if n := len(server.Conns()); n != 0 {
			t.Errorf("%s: dialled all the same", name)
		}
	}
}

// Wherever a server repeats a secret, in whatever form, its words are withheld.
func TestSecretsInAnyForm(t *testing.T) {
	hide := newSecrets(password)
	exchange := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, words := range []string{
		"no " + password, `no "p4ss/wörd +%&\"ok"`, "no p4ss%2Fw%C3%B6rd+%2B%25%26%22ok", "NO P4SS%2FW%C3%B6RD%20+%25&%22OK",
		exchange(password), exchange("\x00" + username + "\x00" + password), exchange("x" + password), exchange("xy" + password + "z"),
		exchange("user=" + username + "\x01auth=Bearer " + password + "\x01\x01"),
		base64.URLEncoding.EncodeToString([]byte("xx" + password)),
	} {
		if got := hide.clean("5.7.8 " + words); got != withheld {
			t.Errorf("%q became %q", words, got)
		}
		if err := hide.scrub(errors.New(words)); err.Error() != withheld {
			t.Errorf("%q became %q", words, err)
		}
	}
	if got := hide.clean("5.7.8 Username and Password not accepted"); got != "5.7.8 Username and Password not accepted" {
		t.Errorf("innocent words became %q", got)
	}
}

// A CA file that could not be used kept every command from opening the desk, and a named pipe held it for ever.
func TestUselessCAFile(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(in("empty"), nil, 0o600), syscall.Mkfifo(in("pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	server := (&transporttest.SMTPServer{}).Start(t)
	for path, want := range map[string]string{
		in("none"): "no such file or directory", in("empty"): "it has no certificate in PEM form",
		in("pipe"): "is not a regular file", dir: "is a directory", "/dev/zero": "is not a regular file",
	} {
		c := config(server, func(c *Config) { c.TLS, c.CAFile = TLSStartTLS, path })
		_, err := newTransport(t, c).Connect(t.Context())
		var p *transports.PrepareError
		if !errors.As(err, &p) || p.Stage != stageTLS || !p.Permanent || p.Err.Error() != "ca_file "+path+" can't be used: "+want {
			t.Errorf("%s: %v", path, err)
		}
		c.TLS = TLSNone
		_ = connect(t, newTransport(t, c)).Close() // without TLS nothing needs it
	}
	if n := len(server.Conns()); n != 5 {
		t.Errorf("%d connections, and 5 were to be made", n)
	}
}

// A server that repeated the password at a stage before AUTH put it into the error: what to hide was known only at AUTH.
func TestSecretsAtAnyStage(t *testing.T) {
	good, roots, _ := transporttest.ServerTLS(t, "127.0.0.1")
	plain := base64.StdEncoding.EncodeToString([]byte("\x00" + username + "\x00" + password))
	bearer := base64.StdEncoding.EncodeToString([]byte("user=" + username + "\x01auth=Bearer " + password + "\x01\x01"))
	for name, words := range map[string]string{
		"password": "554 5.7.0 " + password,
		"PLAIN":    "554 5.7.0 not " + plain,
		"LOGIN":    "554 5.7.0 " + base64.StdEncoding.EncodeToString([]byte(password)),
		"XOAUTH2":  "554 5.7.0 " + bearer,
		"folded":   "554-5.7.0 " + bearer[:60] + "\r\n554 5.7.0 " + bearer[60:],
		"no reply": plain,
	} {
		for _, verb := range []string{"GREETING", "EHLO 1", "STARTTLS", "EHLO 2", "AUTH"} {
			server := (&transporttest.SMTPServer{Extensions: []string{"STARTTLS", "AUTH PLAIN LOGIN XOAUTH2"}, TLS: good, Steps: map[string]step{
				verb: {Say: words + "\r\n"},
			}}).Start(t)
			_, err := newTransport(t, config(server, secure(roots))).Connect(t.Context())
			if err == nil || !strings.Contains(err.Error(), withheld) {
				t.Errorf("%s at %s: %v", name, verb, err)
			}
		}
	}
}

func TestConfig(t *testing.T) {
	good := Config{Address: "mail.example.com:587", From: "Desk <desk@example.com>"}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"no port":                 func(c *Config) { c.Address = "mail.example.com" },
		"no host":                 func(c *Config) { c.Address = ":25" },
		"tls":                     func(c *Config) { c.TLS = "ssl" },
		"auth":                    func(c *Config) { c.Auth = "cram-md5" },
		"no username":             func(c *Config) { c.Auth, c.Password = AuthPlain, thePassword },
		"username":                func(c *Config) { c.Auth, c.Username, c.Password = AuthPlain, "a\x00b", thePassword },
		"no password":             func(c *Config) { c.Auth, c.Username = AuthPlain, username },
		"password in plain text":  func(c *Config) { secure(nil)(c); c.TLS, c.Address = TLSNone, "192.0.2.1:25" },
		"no from":                 func(c *Config) { c.From = "" },
		"from of two":             func(c *Config) { c.From = "a@example.com, b@example.com" },
		"from with a header":      func(c *Config) { c.From = "Desk <desk@example.com>\r\nBcc: x@example.com" },
		"from not ASCII":          func(c *Config) { c.From = "désk@example.com" },
		"from encodes a line end": func(c *Config) { c.From = "=?utf-8?q?a=0D=0ABcc:_x?= <desk@example.com>" },
		"from quoted":             func(c *Config) { c.From = `"a b"@example.com` },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
