package api

import (
	"cmp"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"archivist/pkg/kernel/access"
)

// about describes an operation in the document beyond its types. The zero value of a field leaves that
// part out.
type about struct {
	tag         string
	role        access.Role // that a caller needs, or one above it; "": administrator
	also        access.Role // another role that may call it, for what is in the path: a researcher or a notifier
	anyone      bool        // every caller who is authenticated may call it, also without a role
	open        bool        // everybody may call it, also without a token
	scope       scope       // how its collection is found; nil: it is not for depositors
	description string
	request     any // an example of the body
	answer      any // an example
	refusals    []problemType
	states      []string // that its parameter "state" can have
	redirect    string   // the media type of what it redirects to
	document    any      // an example of that
	table       string   // what it is as CSV: it has that form, too
	form        bool     // it takes a form of Merritt, and answers as Merritt does
}

// needs is the lowest role that a caller needs. The zero value is closed: an operation that names no role is the
// administrator's.
func (a about) needs() access.Role { return cmp.Or(a.role, administrator) }

// roles are all roles with which the operation can be called.
func (a about) roles() []access.Role {
	above := []access.Role{viewer, operator, administrator}
	all := slices.Clone(above[slices.Index(above, a.needs()):])
	if a.also != "" {
		all = append(all, a.also)
	}
	if a.scope != nil {
		all = append(all, access.Depositor)
	}
	return all
}

// limitedTo says what a role is limited to, "" for the others.
var limitedTo = map[access.Role]string{access.Researcher: " of the project",
	access.Notifier:  " of the archive",
	access.Depositor: " of the collection"}

// anyOf are the roles, for people: one of them is enough.
func (a about) anyOf() string {
	var all []string
	for _, r := range a.roles() {
		all = append(all, string(r)+limitedTo[r])
	}
	if last := len(all) - 1; last > 0 {
		return strings.Join(all[:last], ", ") + " or " + all[last]
	}
	return all[0]
}

// bearerScheme is the name of the only way to say who calls.
const bearerScheme = "bearer"

// secure names the roles that can call the operation: any of them is enough ("Security Requirement
// Object"). It also ends the description with a sentence about them.
func (a about) secure(op *huma.Operation) {
	op.Security = nil
	if a.open {
		op.Security = []map[string][]string{{}} // none
		op.Description += "\n\nRole: none is needed, and no token."
		return
	}
	if a.anyone {
		op.Security = []map[string][]string{{bearerScheme: {}}}
	} else {
		for _, r := range a.roles() {
			op.Security = append(op.Security, map[string][]string{bearerScheme: {string(r)}})
		}
	}
	says := a.anyOf()
	if a.anyone {
		says = "none is needed"
	}
	op.Description += "\n\nRole: " + says + "."
}

// parameter describes a parameter in the document. The example is "" where the type says enough.
type parameter struct{ description, example string }
