package signin

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Program gives out the token of a program that has a secret, a new one when the last one has
// expired, or is about to. Tokens are in memory only. The fields are set before and not changed;
// the methods can be called concurrently.
type Program struct {
	ID, Secret string
	At         func(context.Context) (issuer string, err error) // asked before each new token
	HTTP       *http.Client
	Now        func() time.Time

	mu   sync.Mutex
	last Tokens
}

// Token returns a token that is valid. Errors are those of At, and of Issuer.Machine.
func (p *Program) Token(ctx context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.Access != "" && p.last.Fresh(p.Now().Add(early)) {
		return p.last.Access, nil
	}

	at, err := p.At(ctx)
	if err != nil {
		return "", err
	}
	i := Issuer{URL: at, HTTP: p.HTTP, Now: p.Now}
	p.last, err = i.Machine(ctx, p.ID, p.Secret)
	return p.last.Access, err
}
