package secret

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

const password = "p4ss/w0rd+\"ü%"

func TestEveryFormIsFound(t *testing.T) {
	f := Of("", password)
	for _, form := range []string{
		password, strings.ToUpper(password), fmt.Sprintf("%q", password), hex.EncodeToString([]byte(password)),
		url.QueryEscape(password), url.PathEscape(password), url.QueryEscape(url.QueryEscape(password)),
		base64.StdEncoding.EncodeToString([]byte(password)), base64.URLEncoding.EncodeToString([]byte(password)),
		base64.StdEncoding.EncodeToString([]byte("\x00me\x00" + password)),
		base64.StdEncoding.EncodeToString([]byte("\x00you\x00" + password)),
		base64.StdEncoding.EncodeToString([]byte("\x00them\x00" + password)),
	} {
		if words := "535 5.7.8 " + form + " is wrong"; !f.In(words) || f.Clean(words) != Withheld {
			t.Errorf("%q is not found", words)
		}
	}
}

// A long token that was folded over the lines of a reply, or of which a part was repeated, used to be kept.
func TestPartsOfLongSecretsAreFound(t *testing.T) {
	const token = "ya29.a0AfH6SMBx7-Q2kzvWl9dY5rJ3nT8uEoPqC"
	f := Of(token)
	encoded := base64.StdEncoding.EncodeToString([]byte("user=desk\x01auth=Bearer " + token + "\x01\x01"))
	for _, words := range []string{
		"line too long: " + token[:30], "… " + token[len(token)-24:], "line too long: AUTH XOAUTH2 " + encoded[:70],
		encoded[:50] + "\n" + encoded[50:], token[:15] + " \n\t" + token[15:],
	} {
		if !f.In(words) {
			t.Errorf("%q is not found", words)
		}
	}
	if words := "access " + token[:5] + "… of " + token[len(token)-6:] + " has expired"; f.In(words) {
		t.Errorf("%q is withheld", words)
	}
}

func TestOtherWordsAreKept(t *testing.T) {
	for _, f := range []Forms{Of(), Of(""), Of(password), Of("ab")} {
		const words = "535 5.7.8 authentication failed, 100% of it"
		if f.In(words) || f.Clean(words) != words {
			t.Errorf("%q withholds %q", []string(f), words)
		}
	}
}
