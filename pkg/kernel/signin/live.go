package signin

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"archivist/pkg/kernel/fault"
)

// early is how long before its end a token is replaced: a request with it takes some time.
const early = time.Minute

// Live gives out the token of a session while it is used, and refreshes it when it has expired, or
// is about to. The fields are set before and not changed; the methods can be called concurrently.
type Live struct {
	Store Store
	API   string
	HTTP  *http.Client
	Now   func() time.Time

	mu   sync.Mutex
	last Session
}

// Token returns a token that is valid. A NotFound: nobody is signed in; an error with ErrEnded:
// one has to sign in again. Only one process refreshes at a time, and the others use what it got:
// a refresh token is used once.
func (l *Live) Token(ctx context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.Access == "" {
		var err error
		if l.last, err = l.Store.Load(l.API); err != nil {
			return "", err
		}
	}
	if l.last.Fresh(l.Now().Add(early)) {
		return l.last.Access, nil
	}
	if err := l.Store.Locked(ctx, l.API, func() error { return l.refresh(ctx) }); err != nil {
		return "", err
	}
	return l.last.Access, nil
}

// refresh replaces the token, unless another process has. While the issuer does not answer, a token
// that has not expired is used up.
func (l *Live) refresh(ctx context.Context) (err error) {
	if l.last, err = l.Store.Load(l.API); err != nil || l.last.Fresh(l.Now().Add(early)) {
		return err
	}
	if l.last.Refresh == "" {
		l.last = Session{}
		return &fault.Error{Kind: fault.Denied, Err: ErrEnded, Msg: "the session has expired"}
	}

	i := Issuer{URL: l.last.Issuer, ClientID: l.last.ClientID, HTTP: l.HTTP, Now: l.Now}
	got, err := i.Refresh(ctx, l.last.Refresh)
	switch {
	case fault.Is(err, fault.Unavailable) && l.Now().Before(l.last.Expires):
		return nil
	case err != nil:
		l.last = Session{}
		return err
	}

	l.last.Tokens = got
	err = l.Store.Save(l.last)
	if err != nil {
		return errors.Join(errors.New("the session cannot be kept; you have to sign in again"), err)
	}
	return nil
}
