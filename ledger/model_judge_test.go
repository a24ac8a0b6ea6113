package ledger_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"countersign/ledger"

	"modernc.org/sqlite"
)

// judge compares a call's outcome with the contract's answer.
func judge(answer mAnswer, got any, err error) error {
	var guard *ledger.GuardError
	var driver *sqlite.Error
	if errors.As(err, &guard) || errors.As(err, &driver) {
		return fmt.Errorf("an error of the database came out: %w", err)
	}
	if errors.Is(err, ledger.ErrBusy) {
		return fmt.Errorf("the ledger was busy: %w", err) // a refusal that could not be recorded would be joined with it
	}
	if err != nil {
		if !slices.ContainsFunc(answer.refusals, func(want error) bool { return sameRefusal(err, want) }) {
			return fmt.Errorf("refused with %T %w, the contract says %s", err, err, wanted(answer))
		}
		return nil
	}
	if answer.refusals != nil && !answer.either {
		return fmt.Errorf("succeeded, the contract says %s", wanted(answer))
	}
	if answer.accept != nil {
		return answer.accept(got)
	}
	return differ(got, answer.value)
}

func wanted(answer mAnswer) string {
	if answer.refusals == nil {
		return "it succeeds"
	}
	var out []string
	for _, r := range answer.refusals {
		out = append(out, fmt.Sprintf("%T%+v", r, reflect.Indirect(reflect.ValueOf(r))))
	}
	return strings.Join(out, " or ")
}

func sameRefusal(err, want error) bool {
	if want == ledger.ErrNoOperator {
		return errors.Is(err, want)
	}
	target := reflect.New(reflect.TypeOf(want))
	return errors.As(err, target.Interface()) && differ(facts(target.Elem().Interface()), facts(want)) == nil
}

// facts is an error without its words.
func facts(err any) any {
	switch e := err.(type) {
	case *ledger.InputError:
		return e.Field
	case *ledger.StatusError:
		return e.ObligationID
	case *ledger.MismatchError:
		return e.ObligationID
	case *ledger.ContradictionError:
		return [2]int64{e.ObligationID, e.DecisionID}
	case *ledger.DecidedError:
		if e.By == "" {
			return [2]any{e.ObligationID, e.Status}
		}
		return [4]any{e.ObligationID, e.Status, e.By, e.At.Unix()}
	}
	return reflect.ValueOf(err).Elem().Interface()
}

// differ compares two values as they print.
func differ[T any](got, want T) error {
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		return fmt.Errorf("got  %s\nwant %s", g, w)
	}
	return nil
}

var errWrongToken = errors.New("the claim has another token than before")
