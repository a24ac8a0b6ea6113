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

func TestOtherWordsAreKept(t *testing.T) {
	for _, f := range []Forms{Of(), Of(""), Of(password), Of("ab")} {
		const words = "535 5.7.8 authentication failed, 100% of it"
		if f.In(words) || f.Clean(words) != words {
			t.Errorf("%q withholds %q", []string(f), words)
		}
	}
}
