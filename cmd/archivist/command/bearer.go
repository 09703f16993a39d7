package command

import (
	"context"
	"errors"
	"path/filepath"

	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/signin"
)

// The environment variables of a program that signs in by itself. The secret is no flag: others
// could read it in the list of processes.
const (
	EnvClientID     = "ARCHIVIST_CLIENT_ID"
	EnvClientSecret = "ARCHIVIST_CLIENT_SECRET"
)

// API is the URL of the API that is used.
func (a *App) API() string { return a.settings.API }

// Sessions are those of this computer, in the folder of the config file.
func (a *App) Sessions() (signin.Store, error) {
	file := configPath(a.Machine)
	if file == "" {
		return signin.Store{},
			Usage("there is no folder for sessions: HOME or XDG_CONFIG_HOME is not set")
	}
	return signin.Store{Dir: filepath.Join(filepath.Dir(file), "sessions")}, nil
}

// The sources of a token that a session has, and of that of the program of what was started here.
const (
	bySession = "archivist login"
	byStart   = "make run"
)

// BeforeSession is the source of a token that goes before that of a session, "" if there is none.
func (a *App) BeforeSession() string {
	if a.settings.TokenFrom == bySession || a.settings.TokenFrom == byStart {
		return ""
	}
	return a.settings.TokenFrom
}

// bearer is what gives the token for a request: that of the environment or the profile, or else that
// of the program of the environment, or else that of the session, or else that of the program of what
// was started here, "" if there is none. So a program never acts as the person who is signed in.
func (a *App) bearer() (func(context.Context) (string, error), error) {
	id, secret := a.Getenv(EnvClientID), a.Getenv(EnvClientSecret)
	if (id == "") != (secret == "") {
		return nil, Usage("%s and %s belong together; one of them is not set", EnvClientID,
			EnvClientSecret)
	}

	token := func(context.Context) (string, error) { return "", nil }
	if started := a.settings.started; started.ClientID != "" {
		token = a.byProgram(started.ClientID, started.ClientSecret)
	}
	unsigned := token // while nobody is signed in
	store, err := a.Sessions()
	switch {
	case a.settings.token != "":
		token = func(context.Context) (string, error) { return a.settings.token, nil }
	case id != "":
		a.settings.TokenFrom = EnvClientID
		token = a.byProgram(id, secret)
	case err == nil: // else there is no folder, and so no session
		if store.Has(a.settings.API) {
			a.settings.TokenFrom = bySession
		}
		live := &signin.Live{Store: store, API: a.settings.API, HTTP: a.HTTP, Now: a.Now}
		token = func(ctx context.Context) (string, error) {
			text, err := live.Token(ctx)
			if fault.Is(err, fault.NotFound) {
				return unsigned(ctx)
			}
			return text, err
		}
	}
	if a.settings.TokenFrom == "" && a.settings.started.ClientID != "" {
		a.settings.TokenFrom = byStart
	}
	return a.careful(token), nil
}

// byProgram gives the tokens of a program that the issuer of the API knows.
func (a *App) byProgram(id, secret string) func(context.Context) (string, error) {
	program := &signin.Program{ID: id, Secret: secret, HTTP: a.HTTP, Now: a.Now,
		At: func(ctx context.Context) (string, error) {
			where, err := a.Client.SignIn(ctx)
			return where.Issuer, err
		}}
	return program.Token
}

// careful keeps a token from a connection that others can read, and says what to do about a session
// that has ended.
func (a *App) careful(token func(context.Context) (string, error)) func(context.Context) (string,
	error) {
	return func(ctx context.Context) (string, error) {
		text, err := token(ctx)
		switch {
		case errors.Is(err, signin.ErrEnded):
			return "", fault.New(fault.Denied, "%w: archivist login", err)
		case err != nil:
			return "", err
		case text != "" && access.CheckIssuer(a.settings.API) != nil:
			return "", Usage("%s: a token is sent by https only, or to this machine", a.settings.API)
		}
		return text, nil
	}
}
