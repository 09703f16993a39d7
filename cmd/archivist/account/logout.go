package account

import (
	"fmt"

	"archivist/cmd/archivist/command"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/signin"
)

// LogoutCmd ends the session.
type LogoutCmd struct{}

// Run tells the issuer, and removes the session here. If the issuer is not there, the session is
// removed, too, and the error says what is left.
func (LogoutCmd) Run(a *command.App) error {
	store, err := a.Sessions()
	if err != nil {
		return err
	}
	return store.Locked(a.Ctx, a.API(), func() error { return logout(a, store) })
}

// logout does it, with the lock.
func logout(a *command.App, store signin.Store) error {
	s, err := store.Load(a.API())
	if fault.Is(err, fault.NotFound) {
		fmt.Fprintln(a.Screen, "Nobody is signed in.")
		return nil
	}

	// A session that cannot be read is removed, too: it is of no use.
	if err == nil && s.Refresh != "" {
		i := &signin.Issuer{URL: s.Issuer, ClientID: s.ClientID, HTTP: a.HTTP, Now: a.Now}
		err = i.Revoke(a.Ctx, s.Refresh)
	}
	if gone := store.Remove(a.API()); gone != nil {
		return gone
	}
	if err != nil {
		return fault.New(fault.Of(err),
			"the session is removed here, but its issuer was not told, where it ends later: %w", err)
	}
	fmt.Fprintln(a.Screen, "Signed out.")
	return nil
}
