package smtp

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"

	"countersign/inputfile"
)

// maxRoots is the most that a CA file may hold, in octets. The bundle of all the
// roots that browsers trust has a fifth of it.
const maxRoots = 1 << 20

// roots are those that a server's certificate may lead to; nil stands for the
// system's. It is asked for each connection, so that a file that is missing fails
// what needs it and nothing else, and that a renewed one is used.
func (c Config) roots() (*x509.CertPool, error) {
	if c.CAFile == "" || c.TLS == TLSNone {
		return c.RootCAs, nil
	}
	pem, _, err := inputfile.Read(c.CAFile, maxRoots)
	if err != nil {
		return nil, fmt.Errorf("ca_file %s can't be used: %w", c.CAFile, reason(err))
	}
	roots := c.RootCAs
	if roots == nil {
		if roots, err = x509.SystemCertPool(); err != nil {
			return nil, fmt.Errorf("the system's roots: %w", err)
		}
	}
	roots = roots.Clone()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca_file %s can't be used: it has no certificate in PEM form", c.CAFile)
	}
	return roots, nil
}

// reason takes the path off an error that names it.
func reason(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
