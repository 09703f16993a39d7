package account

import (
	"crypto/rand"
	"fmt"
	"io"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// TokenCmd has the commands for the deployment's own tokens.
type TokenCmd struct {
	List   tokenListCmd   `cmd:"" help:"List the tokens: what each allows, and until when."`
	Show   tokenShowCmd   `cmd:"" help:"Show a token: who made it and why, and when it was used."`
	Create tokenCreateCmd `cmd:"" help:"Create a token, and print it once."`
	Revoke tokenRevokeCmd `cmd:"" help:"Revoke a token: from then on it is accepted nowhere."`
}

// tokenListCmd lists tokens, newest first.
type tokenListCmd struct {
	State string `help:"Only tokens in this state." enum:",active,expired,revoked" default:"" placeholder:"STATE"`
	command.Limit
}

func (tokenListCmd) Prints() any { return v1.Token{} }

// Run lists the newest tokens first.
func (c *tokenListCmd) Run(a *command.App) error {
	return command.List(a, c.Limit, tokenColumns...)(a.Client.Tokens(a.Ctx,
		v1.Filter{State: c.State, Limit: c.More()}))
}

var tokenColumns = []terminal.Column[v1.Token]{
	{Title: "token", Text: func(t v1.Token) string { return t.ID }},
	{Title: "name", Text: func(t v1.Token) string { return t.Name }},
	{Title: "state", Text: func(t v1.Token) string { return t.State }, Style: command.StateStyle},
	{
		Title: "roles",
		Text:  func(t v1.Token) string { return strings.Join(t.Grants, ", ") },
		Share: 1,
	},
	{
		Title: "ends",
		Text:  func(t v1.Token) string { return command.Minute(t.Expires) },
		Raw:   func(t v1.Token) string { return t.Expires },
	},
	{Title: "used", Text: func(t v1.Token) string { return t.Used }, Extra: true},
}

// tokenName is the argument of the commands about one token.
type tokenName struct {
	Name string `arg:"" name:"token" help:"Name of an active token, or id of any (archivist token list shows all)."`
}

// tokenShowCmd shows a token.
type tokenShowCmd struct{ tokenName }

func (tokenShowCmd) Prints() any { return v1.Token{} }

// Run shows all but its secret, which nobody can read again.
func (c *tokenShowCmd) Run(a *command.App) error {
	return command.Show(a, showToken)(a.Client.Token(a.Ctx, c.Name))
}

func showToken(p terminal.Page, t v1.Token) {
	p.Fields("token", t.ID, "name", t.Name, "state", t.State, "roles", strings.Join(t.Grants, ", "),
		"created", t.Created+" by "+t.By, "reason", t.Reason, "ends", t.Expires, "last used", t.Used)
	if t.Revoked != "" {
		p.Fields("revoked", t.Revoked+" by "+t.RevokedBy, "because", t.RevokedReason)
	}
}

// tokenCreateCmd creates a token.
type tokenCreateCmd struct {
	Name   string   `arg:"" help:"Name of the program or the computer that uses it."`
	Role   []string `required:"" sep:"none" help:"Role, e.g. depositor:maps; can be repeated." placeholder:"ROLE"`
	Days   int      `required:"" help:"In how many days it ends, at most 366." placeholder:"N"`
	Reason string   `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
}

// Help says where the token goes.
func (tokenCreateCmd) Help() string {
	return `The token alone is printed on the standard output, once: nobody can show it again. A program sends it as
"Authorization: Bearer TOKEN"; archivist takes it from the environment variable ARCHIVIST_TOKEN.

  archivist token create scanner-hook --role depositor:maps --days 90 --reason "Its hook." >token`
}

func (tokenCreateCmd) Prints() any { return v1.NewToken{} }

// Run prints the token for a pipe, and what else is said of it for the person.
func (c *tokenCreateCmd) Run(a *command.App) error {
	t, err := a.Client.CreateToken(a.Ctx, v1.TokenRequest{Name: c.Name, Grants: c.Role, Days: c.Days,
		Reason: c.Reason}, rand.Text())
	if err != nil {
		return err
	}
	if a.JSON != nil {
		return a.Print(t, nil)
	}
	fmt.Fprintf(a.Errors, "archivist: the token %s (%s) allows %s until %s. It is shown once:\n",
		t.ID, t.Name, strings.Join(t.Grants, ", "), t.Expires)
	_, err = io.WriteString(a.Out, t.Text+"\n")
	return err
}

// tokenRevokeCmd revokes a token.
type tokenRevokeCmd struct {
	tokenName
	Reason string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
}

func (tokenRevokeCmd) Prints() any { return v1.Token{} }

// Run asks which token has the name first: a request that is repeated must not be for another one.
func (c *tokenRevokeCmd) Run(a *command.App) error {
	t, err := a.Client.Token(a.Ctx, c.Name)
	if err != nil {
		return err
	}
	return command.Show(a, showToken)(a.Client.RevokeToken(a.Ctx, t.ID, c.Reason))
}
