package interact_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"countersign/interact"
	"countersign/tests/fakeslack"
)

// A secret that is empty or can't be read signs nothing, also not what was signed with the empty one.
func TestWithoutASecretNothingIsSigned(t *testing.T) {
	t.Parallel()
	for name, secret := range map[string]func() (string, error){
		"empty":     func() (string, error) { return "", nil },
		"not there": func() (string, error) { return "", errors.New("no such variable") },
	} {
		refused := 0
		h := &interact.HTTP{Secret: secret, Refused: func(context.Context, error) { refused++ },
			Accept: func([]byte) (func(), error) { t.Errorf("%s: accepted", name); return func() {}, nil }}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, fakeslack.New(t, fakeslack.WithSecret("")).SignedRequest("http://app.invalid/", []byte("{}"), time.Now()))
		if w.Code != 401 || refused != 1 {
			t.Errorf("%s: %d, %d refusals", name, w.Code, refused)
		}
	}
}

// answer notes when it was given.
type answer struct {
	*httptest.ResponseRecorder
	order *[]string
}

func (a answer) WriteHeader(status int) {
	*a.order = append(*a.order, strconv.Itoa(status))
	a.ResponseRecorder.WriteHeader(status)
}

// The work begins after the answer was given.
func TestHTTPAcknowledgesFirst(t *testing.T) {
	t.Parallel()
	var order []string
	note := func(what string) { order = append(order, what) }
	h := &interact.HTTP{Secret: func() (string, error) { return fakeslack.Secret, nil }, Refused: func(_ context.Context, err error) { t.Error(err) },
		Accept: func(payload []byte) (func(), error) { note(string(payload)); return func() { note("work") }, nil }}
	w := answer{httptest.NewRecorder(), &order}
	h.ServeHTTP(w, fakeslack.New(t).SignedRequest("http://app.invalid/", []byte(`{"a":"&=+"}`), time.Now()))
	if !slices.Equal(order, []string{`{"a":"&=+"}`, "200", "work"}) || w.Body.Len() != 0 {
		t.Errorf("%q, %q", order, w.Body)
	}
}
