package account

import (
	"errors"
	"fmt"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/signin"
	"archivist/pkg/kernel/terminal"
)

// LoginCmd signs a person in, where the deployment says.
type LoginCmd struct {
	Device bool `help:"Sign in with a browser elsewhere: a page and a code for it are printed."`
}

// Prints is an empty value of what it prints.
func (LoginCmd) Prints() any { return v1.Caller{} }

// Run signs in, keeps the session, and asks the API who that is: so a session that the API does
// not accept is seen now.
func (c *LoginCmd) Run(a *command.App) error {
	if from := a.BeforeSession(); from != "" {
		return command.Usage("the token of %s goes before a session; take it away to sign in", from)
	}

	store, err := a.Sessions()
	if err != nil {
		return err
	}
	where, err := a.Client.SignIn(a.Ctx)
	if err != nil {
		return err
	}
	if err := access.CheckIssuer(where.Issuer); err != nil {
		return fault.New(fault.Invalid, "the API names an issuer of tokens that cannot be used: %w",
			err)
	}

	i := &signin.Issuer{URL: where.Issuer, ClientID: where.ClientID, Scopes: where.Scopes,
		HTTP: a.HTTP, Now: a.Now}
	tokens, err := c.tokens(a, i)
	if err != nil {
		return err
	}
	err = store.Locked(a.Ctx, a.API(), func() error {
		return store.Save(signin.Session{
			API:      a.API(),
			Issuer:   i.URL,
			ClientID: i.ClientID,
			Tokens:   tokens,
		})
	})
	if err != nil {
		return err
	}
	return command.Show(a, showCaller)(a.Client.WhoAmI(a.Ctx))
}

// errNoBrowser: there is no browser here.
var errNoBrowser = errors.New("no browser")

// tokens are those of a sign-in with the browser of this machine, or if there is none, with one
// elsewhere.
func (c *LoginCmd) tokens(a *command.App, i *signin.Issuer) (signin.Tokens, error) {
	if !c.Device && a.Browse != nil {
		tokens, err := i.Browser(a.Ctx, func(url string) error {
			if a.Browse(url) != nil {
				return errNoBrowser
			}
			fmt.Fprintf(a.Errors, "Sign in with the browser. If it does not open, open this page "+
				"here, or use --device:\n  %s\n", terminal.Printable(url))
			return nil
		})
		if !errors.Is(err, errNoBrowser) {
			return tokens, err
		}
	}

	return i.Device(a.Ctx, func(code signin.Code) error {
		fmt.Fprintf(a.Errors, "Open this page with any browser, and type the code there:\n  %s\n  %s\n",
			terminal.Printable(code.URL), terminal.Printable(code.Code))
		return nil
	}, a.Wait)
}
