// Package registry is how persons change what is registered under a name, whatever it is.
//
// A person gives a reason, which others can read. A request that is repeated changes nothing more, and the same id for
// another request is a mistake. A change that another one was faster than is decided again.
//
//	err := by.Check()
//	err = t.Again(ctx, "consumer search", func() error {
//		row := …                                                      // as it is now
//		if done, err := row.Requests.Done(by); done || err != nil {
//			return err
//		}
//		row.Requests = row.Requests.With(by)
//		return tx.Commit(ctx)                                         // a Stale: once more
//	})
package registry

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// By says who changes something, why, and by which request.
type By struct {
	Actor     string // a person, a key of the API, or a part of the system
	Reason    string // for persons; see Check
	Component string // the part of the system through which the change is made, if the events of its subject tell that

	// Request is the id of the request, "" for none, and Asks what it asks for: a text that is the same for the same
	// request. "" is not compared.
	Request, Asks string
}

// MaxReason is how long a reason may be, in characters. Events have it.
const MaxReason = 500

// Check returns an Invalid if there is no reason, or one that cannot be shown in one line.
func (b By) Check() error {
	switch n := utf8.RuneCountInString(strings.TrimSpace(b.Reason)); {
	case n == 0:
		return fault.New(fault.Invalid, "reason: empty; say why, others will read it")
	case n > MaxReason:
		return fault.New(fault.Invalid,
			"reason: %d characters; at most %d are accepted", n, MaxReason)
	case !utf8.ValidString(b.Reason) || strings.ContainsFunc(b.Reason, IsBreak):
		return fault.New(fault.Invalid,
			"reason: it has a control character or a line break; expected one line of text")
	}
	return nil
}

// IsBreak reports what ends a line, or is no text.
func IsBreak(r rune) bool { return r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' }

// Requests are the last requests that have changed something, as its row keeps them.
type Requests []string

// MaxRequests is how many are kept. One that is repeated after so many others counts as a new one.
const MaxRequests = 20

// asks is what stands between the id of a request and what it has asked for. Ids have no control characters.
const asks = "\x1f"

// Done reports whether a request was done before. It is a Conflict if its id was used for another one.
func (r Requests) Done(by By) (bool, error) {
	if by.Request == "" {
		return false, nil
	}
	for _, one := range r {
		id, asked, _ := strings.Cut(one, asks)
		switch {
		case id != by.Request:
		case asked == "" || by.Asks == "" || asked == by.Asks:
			return true, nil
		default:
			return false, fault.New(fault.Conflict,
				"the id of this request was used for another one before; send a new id")
		}
	}
	return false, nil
}

// Gone is the error of a request to make something that was done before, and that was deleted since.
func Gone(what string) error {
	return fault.New(fault.Conflict,
		"this request was done before, and %s was deleted since; send a new request to "+
			"create it again", what)
}

// With are the requests with one more, without the oldest one if there are too many. r is not changed.
func (r Requests) With(by By) Requests {
	if by.Request == "" {
		return r
	}
	one := by.Request
	if by.Asks != "" {
		one += asks + by.Asks
	}
	all := append(slices.Clone(r), one)
	return all[max(0, len(all)-MaxRequests):]
}

// Note keeps a request that has changed nothing, in the row with its requests: a repetition changes nothing either,
// whatever others change meanwhile. id is that of the transaction. A Stale means that the row has changed.
func Note(ctx context.Context, t *table.Table, id string, row table.Row, requests *Requests, by By) error {
	if by.Request == "" {
		return nil
	}
	*requests = requests.With(by)
	tx := t.Begin(id)
	tx.Save(row)
	return tx.Commit(ctx)
}
