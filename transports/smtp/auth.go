package smtp

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/emersion/go-sasl"
)

// xoauth2 is Google's and Microsoft's mechanism, which go-sasl has not:
// https://developers.google.com/workspace/gmail/imap/xoauth2-protocol.
type xoauth2 struct{ username, token string }

func (x xoauth2) Start() (string, []byte, error) {
	return "XOAUTH2", []byte("user=" + x.username + "\x01auth=Bearer " + x.token + "\x01\x01"), nil
}

// Next answers the challenge that explains a failure with nothing, and then the
// server says no.
func (xoauth2) Next([]byte) ([]byte, error) { return []byte{}, nil }

// credentials asks for the password; the secrets are for the errors to come.
func (c Config) credentials() (sasl.Client, string, secrets, error) {
	password, err := c.Password()
	if err != nil {
		return nil, "", secrets{}, fmt.Errorf("the password can't be read: %w", err)
	}
	if password == "" || strings.ContainsFunc(password, unicode.IsControl) {
		return nil, "", secrets{}, errors.New("the password is empty, or has a control character such as a line end")
	}
	hide := newSecrets(password)
	switch c.Auth {
	case AuthLogin:
		return sasl.NewLoginClient(c.Username, password), sasl.Login, hide, nil
	case AuthXOAuth2:
		return xoauth2{c.Username, password}, "XOAUTH2", hide, nil
	default:
		return sasl.NewPlainClient("", c.Username, password), sasl.Plain, hide, nil
	}
}
