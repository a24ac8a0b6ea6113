package transports

import "errors"

// An Outcome is how a Send ended.
type Outcome string

// The three outcomes; the package documentation has the table.
const (
	Confirmed Outcome = "confirmed"
	Refused   Outcome = "refused"
	Ambiguous Outcome = "ambiguous"
)

// Classify turns the error of a Send into its outcome. It is the one place where
// an error that nobody recognises becomes ambiguous: only nil confirms, and only
// a *RefusedError that no *AmbiguousError stands beside or around refuses.
func Classify(err error) Outcome {
	if err == nil {
		return Confirmed
	}
	var (
		ambiguous *AmbiguousError
		refused   *RefusedError
	)
	if !errors.As(err, &ambiguous) && errors.As(err, &refused) {
		return Refused
	}
	return Ambiguous
}

// Judge is Classify for a whole Send: a yes that names no coordinate proves
// nothing, so it is ambiguous too.
func Judge(r Receipt, err error) Outcome {
	if err == nil && r.Coordinate == "" {
		return Ambiguous
	}
	return Classify(err)
}
