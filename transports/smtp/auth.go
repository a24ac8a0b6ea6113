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

// A login is what a session authenticates with. The zero login is for AuthNone.
type login struct {
	client    sasl.Client
	mechanism string
	hide      secrets // what no error of the session may repeat
}

// login asks for the password.
func (c Config) login() (login, error) {
	if c.Auth == AuthNone {
		return login{}, nil
	}
	password, err := c.Password()
	if err != nil {
		return login{}, fmt.Errorf("the password can't be read: %w", err)
	}
	if password == "" || strings.ContainsFunc(password, unicode.IsControl) {
		return login{}, errors.New("the password is empty, or has a control character such as a line end")
	}
	hide := newSecrets(password)
	switch c.Auth {
	case AuthLogin:
		return login{sasl.NewLoginClient(c.Username, password), sasl.Login, hide}, nil
	case AuthXOAuth2:
		return login{xoauth2{c.Username, password}, "XOAUTH2", hide}, nil
	default:
		return login{sasl.NewPlainClient("", c.Username, password), sasl.Plain, hide}, nil
	}
}
