package transports

import "context"

// Description is what a provider says of a destination, for the eye of an operator.
type Description struct {
	Name     string // the provider's own name for it; "" when it has none. It is the provider's word, and nobody's we trust
	External bool   // people of another organisation read it
}

// A Describer is a Transport whose provider knows more of a destination than its address. It sends nothing. Its error says that the
// provider was not reached, or doesn't know the destination.
type Describer interface {
	Describe(ctx context.Context, channel string) (Description, error)
}
