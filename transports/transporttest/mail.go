package transporttest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"math/big"
	"mime"
	"net"
	"net/mail"
	"strings"
	"testing"
	"time"
)

// Read decodes a mail with nothing but the standard library, which doesn't change
// line ends of base64.
func (m Mail) Read(t *testing.T) (mail.Header, Delivered) {
	t.Helper()
	parsed, err := mail.ReadMessage(strings.NewReader(m.Content))
	if err != nil {
		t.Fatalf("the mail can't be read: %v\n%s", err, m.Content)
	}
	body, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, parsed.Body))
	if err != nil {
		t.Fatalf("the body can't be decoded: %v\n%s", err, m.Content)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject"))
	if err != nil {
		t.Fatalf("the subject can't be decoded: %v", err)
	}
	return parsed.Header, Delivered{
		Channel: strings.Join(m.To, ","), Thread: parsed.Header.Get("In-Reply-To"), Subject: subject, Text: string(body),
	}
}

// ServerTLS makes a certificate for the names, host names or addresses, and gives
// the server's side, and for the client the roots and the same as PEM.
func ServerTLS(t *testing.T, names ...string) (server *tls.Config, roots *x509.CertPool, rootsPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(certificate)
	var b bytes.Buffer
	if err := pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	return config, roots, b.Bytes()
}
