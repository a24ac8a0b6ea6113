package interact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	slackgo "github.com/slack-go/slack"
)

// maxBody bounds a request of Slack's. A payload carries its whole message, of at most 50 blocks.
const maxBody = 4 << 20

// HTTP receives interactions by HTTP. Secret returns the app's signing secret.
// Source: https://docs.slack.dev/authentication/verifying-requests-from-slack
type HTTP struct {
	Secret func() (string, error)
	Accept func(payload []byte) (work func(), err error)
	// Refused is told of each request that Slack did not sign.
	Refused func(ctx context.Context, cause error)
}

// ServeHTTP checks the signature over the whole body, acknowledges, and has the interaction worked on.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "Slack posts its interactions here", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the request is too large, or was cut off", http.StatusRequestEntityTooLarge)
		return
	}
	if err := h.signed(r.Header, body); err != nil {
		h.Refused(r.Context(), err)
		http.Error(w, "not signed by Slack, or more than five minutes old", http.StatusUnauthorized)
		return
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("payload") == "" {
		http.Error(w, "there is no payload", http.StatusBadRequest)
		return
	}
	work, err := h.Accept([]byte(form.Get("payload")))
	if err != nil {
		http.Error(w, "the payload is no interaction", http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusOK)
	work()
}

// signed checks that Slack signed this body within five minutes. A secret that can't be read, or is empty, signs nothing.
func (h *HTTP) signed(header http.Header, body []byte) error {
	secret, err := h.Secret()
	if err != nil {
		return fmt.Errorf("the signing secret: %w", err)
	}
	if secret == "" {
		return errors.New("the signing secret is empty")
	}
	verifier, err := slackgo.NewSecretsVerifier(header, secret)
	if err != nil {
		return errUnsigned
	}
	if _, err := verifier.Write(body); err != nil {
		return err
	}
	if verifier.Ensure() != nil {
		return errUnsigned
	}
	return nil
}

var errUnsigned = errors.New("the request is not signed by Slack, or is more than five minutes old")
