package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"archivist/localstack"
	"archivist/localstack/issuer"
	v1 "archivist/pkg/api/v1"
)

// tokensOff is what the environment variable TOKENS says, so that the API demands no tokens.
const tokensOff = "off"

// maker is the machine that acts in the name of who has started the stack: commands do, as long as nobody signs in.
const maker = "make-run"

// issuerPort is where the issuer of tokens listens. It is that of a demo, too.
func issuerPort(s *localstack.Stack) int { return s.Port + 15 }

// issuerURL is the issuer's URL, as people, programs and functions reach it.
func issuerURL(s *localstack.Stack) string {
	return fmt.Sprintf("http://127.0.0.1:%d", issuerPort(s))
}

// demand has the stack demand tokens of the issuer beside it.
func demand(s *localstack.Stack) {
	s.Context["tokenIssuer"] = issuerURL(s)
	s.Context["tokenAudience"] = issuer.Audience
	s.Context["tokenClaim"] = strings.Join(issuer.Claims(), ",")
	s.Context["tokenClient"] = issuer.ClientID
	s.Context["tokenScopes"] = strings.Join(issuer.Scopes(), " ")
}

// serveIssuer serves the issuer of tokens with the accounts of a file until it is ended. Its keys are new with each
// start: sessions end then, and functions read the keys again.
func serveIssuer(address, accounts string) error {
	all, err := issuer.Read(accounts)
	if err != nil {
		return err
	}
	i, err := issuer.New(issuer.Settings{URL: "http://" + address, Accounts: all, Now: time.Now})
	if err != nil {
		return err
	}
	return (&http.Server{Addr: address, Handler: i, ReadHeaderTimeout: 10 * time.Second}).ListenAndServe()
}

// startIssuer starts the issuer if the stack demands tokens, and says in the outputs as whom commands act.
func startIssuer(ctx context.Context, s *localstack.Stack, o *localstack.Outputs) error {
	if s.Context["tokenIssuer"] == "" {
		return nil
	}
	file := s.State("accounts.json")
	m, err := makerOf(file)
	if err != nil {
		return err
	}
	o.ClientID, o.ClientSecret = m.ID, m.Secret
	return startServer(ctx, s, "issuer", issuerPort(s), "/.well-known/openid-configuration", file)
}

// makerOf is the machine of the accounts in a file, which is made if it is missing: with those for trying, and a secret
// of its own.
func makerOf(file string) (issuer.Machine, error) {
	all, err := issuer.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		all = issuer.Default()
		all.Machines = append(all.Machines,
			issuer.Machine{ID: maker, Secret: rand.Text(), Groups: []string{"administrator"}})
		var data []byte
		if data, err = json.MarshalIndent(all, "", "  "); err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
	}
	if err != nil {
		return issuer.Machine{}, err
	}
	for _, m := range all.Machines {
		if m.ID == maker {
			return m, nil
		}
	}
	return issuer.Machine{}, fmt.Errorf("%s has no machine %s; run make stop, then make run", file, maker)
}

// tokenFor is a token of the deployment for a program of this machine that does not sign in, with one grant; "" if the
// stack demands none. It is made once, and forgotten with the stack.
func tokenFor(ctx context.Context, s *localstack.Stack, o localstack.Outputs, name, grant string) (string, error) {
	if o.ClientID == "" {
		return "", nil
	}
	file := s.State("token-" + name)
	data, err := os.ReadFile(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return string(data), err
	}
	made, err := o.Client("make").CreateToken(ctx, v1.TokenRequest{Name: name, Grants: []string{grant}, Days: 366,
		Reason: "For " + name + " on this machine"}, "")
	if err != nil {
		return "", err
	}
	return made.Text, os.WriteFile(file, []byte(made.Text), 0o600)
}
