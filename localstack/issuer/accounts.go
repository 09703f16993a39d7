package issuer

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"

	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
)

// Accounts are who can sign in.
type Accounts struct {
	Users    []User    `json:"users"`
	Machines []Machine `json:"machines"`
}

// User is a person.
type User struct {
	Subject string   `json:"subject"` // stable; in events
	Name    string   `json:"name"`
	Groups  []string `json:"groups"` // grants, e.g. administrator or depositor:maps
}

// Machine is a program with a secret of its own (RFC 6749, section 4.4). Its id is its subject.
type Machine struct {
	ID     string   `json:"id"`
	Secret string   `json:"secret"`
	Groups []string `json:"groups"`
}

// Default are accounts for trying: one for each role. What is theirs is in the collection sample.
func Default() Accounts {
	return Accounts{
		Users: []User{
			{"alma", "Alma, an administrator", []string{"administrator"}},
			{"otto", "Otto, an operator", []string{"operator"}},
			{"vera", "Vera, a viewer", []string{"viewer"}},
			{"dora", "Dora, a depositor of sample", []string{"depositor:sample"}},
			{"nora", "Nora, who may do nothing", nil},
		},
		Machines: []Machine{
			{"harvester", "a-secret-that-everybody-knows", []string{"depositor:sample"}},
		},
	}
}

// Read reads accounts from a file of JSON. All errors are Invalid, but for a file that cannot be
// read.
func Read(file string) (a Accounts, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return a, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return a, fault.New(fault.Invalid, "%s does not have accounts: %w", file, err)
	}
	if err := a.check(); err != nil {
		return a, fault.New(fault.Invalid, "%s: %w", file, err)
	}
	return a, nil
}

// What accounts can be.
const (
	mostAccounts   = 100
	mostGroups     = 50
	shortestSecret = 16
)

var (
	ids   = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	shown = regexp.MustCompile(`^[\p{L}\p{N}\p{P} ]{1,100}$`)
)

// check returns an Invalid that says which account is wrong.
func (a Accounts) check() error {
	if len(a.Users)+len(a.Machines) > mostAccounts {
		return fault.New(fault.Invalid, "there are more than %d accounts", mostAccounts)
	}

	seen := map[string]bool{ClientID: true}
	account := func(id string, groups []string) error { return checkAccount(seen, id, groups) }
	for _, u := range a.Users {
		if err := account(u.Subject, u.Groups); err != nil {
			return err
		}
		if !shown.MatchString(u.Name) {
			return fault.New(fault.Invalid,
				"the account %s: name: expected 1 to 100 letters, digits and signs", u.Subject)
		}
	}
	for _, m := range a.Machines {
		if err := account(m.ID, m.Groups); err != nil {
			return err
		}
		if len(m.Secret) < shortestSecret {
			return fault.New(fault.Invalid, "the account %s: secret: expected at least %d characters",
				m.ID, shortestSecret)
		}
	}
	return nil
}

// checkAccount checks an id, which no account of seen may have, and what it is granted.
func checkAccount(seen map[string]bool, id string, groups []string) error {
	if !ids.MatchString(id) || seen[id] {
		return fault.New(fault.Invalid, "the account %q: expected an id of lower-case letters, "+
			"digits, dots, underscores and hyphens, at most 64, that no other account has", id)
	}
	seen[id] = true
	if len(groups) > mostGroups {
		return fault.New(fault.Invalid, "the account %s has more than %d groups", id, mostGroups)
	}
	for _, g := range groups {
		if _, err := access.Parse(g); err != nil {
			return fault.New(fault.Invalid, "the account %s: groups: %w", id, err)
		}
	}
	return nil
}

// user is the one with a subject, or nil.
func (a Accounts) user(subject string) *User {
	for n, u := range a.Users {
		if u.Subject == subject {
			return &a.Users[n]
		}
	}
	return nil
}

// machine is the one with an id, or nil.
func (a Accounts) machine(id string) *Machine {
	for n, m := range a.Machines {
		if m.ID == id {
			return &a.Machines[n]
		}
	}
	return nil
}

// What the tokens say.
const (
	ClientID = "archivist-cli" // of the command line
	Audience = "archivist"     // of tokens for the API
)
