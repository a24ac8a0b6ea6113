package ledger_test

import (
	"slices"

	"countersign/operator"

	"pgregory.net/rapid"
)

// uniform gives every element the same chance: rapid's own SampledFrom prefers the first ones.
func uniform[T any](list []T) *rapid.Generator[T] {
	const bits = 12
	return rapid.Custom(func(t *rapid.T) T {
		var u int
		for range bits {
			u <<= 1
			if rapid.Bool().Draw(t, "bit") {
				u++
			}
		}
		return list[u*len(list)>>bits]
	})
}

// upTo draws an index below n.
func (w *world) upTo(n int, label string) int {
	indexes := make([]int, n)
	for i := range indexes {
		indexes[i] = i
	}
	return choose(w, label, indexes)
}

func (w *world) oneIn(n int, label string) bool { return w.upTo(n, label) == n-1 }

func choose[T any](w *world, label string, list []T) T { return uniform(list).Draw(w.t, label) }

func (w *world) inFocus(obligation int64) bool { return w.focus == 0 || w.focus == obligation }

// obligation draws one of a kind, or any, or one that there isn't.
func (w *world) obligation(lawful bool, kind func(*model, *mObligation) bool) int64 {
	var ids []int64
	for _, o := range w.m.obligations {
		if lawful && kind(w.m, o) && w.inFocus(o.id) {
			ids = append(ids, o.id)
		}
	}
	if ids != nil {
		return choose(w, "obligation", ids)
	}
	return int64(w.upTo(len(w.m.obligations)+2, "any obligation"))
}

// known is the obligation, or an empty one.
func (w *world) known(id int64) *mObligation {
	if o := w.m.obligation(id); o != nil {
		return o
	}
	return &mObligation{}
}

func (w *world) decision(lawful bool, kind func(*model, *mDecision) bool) int64 {
	var ids []int64
	for _, d := range w.m.decisions {
		if lawful && kind(w.m, d) && w.inFocus(d.obligation) {
			ids = append(ids, d.id)
		}
	}
	if ids != nil {
		return choose(w, "decision", ids)
	}
	return int64(w.upTo(len(w.m.decisions)+2, "any decision"))
}

// epochBeside is a stale epoch, or a future one.
func (w *world) epochBeside(o *mObligation) int64 {
	return o.epoch + choose(w, "epoch", []int64{-1, 1, -3600})
}

// approverOf returns an operator who may decide the obligation.
func (w *world) approverOf(o *mObligation) operator.Operator {
	may := slices.DeleteFunc(slices.Clone(w.operators), func(op operator.Operator) bool {
		return op.ID() == o.newest().Agent || op.ID() == o.newest().User
	})
	if len(may) == 0 {
		return w.operators[0]
	}
	return choose(w, "operator", may)
}

// filerOf returns the operator whose own draft it is, if it is one's.
func (w *world) filerOf(o *mObligation) operator.Operator {
	for _, op := range w.operators {
		if op.ID() == o.newest().Agent || op.ID() == o.newest().User {
			return op
		}
	}
	return w.operators[0]
}

// wrong draws which one of n things is wrong with a step that is not lawful, from 1; 0 is nothing.
func (w *world) wrong(lawful bool, n int) int {
	if lawful {
		return 0
	}
	return w.upTo(n, "wrong") + 1
}

func (w *world) operator(lawful bool) operator.Operator {
	if !lawful {
		return operator.Operator{}
	}
	return choose(w, "operator", w.operators)
}

func (w *world) reason(lawful bool) string {
	if !lawful {
		return " \n"
	}
	return choose(w, "reason", mReasons)
}

func (w *world) operatorNamed(id string) operator.Operator {
	for _, op := range w.operators {
		if op.ID() == id {
			return op
		}
	}
	return operator.Operator{}
}
