package api

import (
	"cmp"

	"github.com/danielgtaylor/huma/v2"
)

// about describes an operation in the document beyond its types. The zero value of a field leaves that
// part out.
type about struct {
	tag         string
	role        Role // that a caller needs; "": Administrator, which may call everything
	description string
	request     any // an example of the body
	answer      any // an example
	refusals    []problemType
	states      []string // that its parameter "state" can have
	redirect    string   // the media type of what it redirects to
	document    any      // an example of that
}

// needs is the role that a caller needs, unless it is an Administrator. The zero value is closed: an
// operation that names no role is the administrator's.
func (a about) needs() Role { return cmp.Or(a.role, Administrator) }

// secure names the roles that can call the operation: any of them is enough ("Security Requirement
// Object"). It also ends the description with a sentence about them.
func (a about) secure(op *huma.Operation) {
	op.Security = []map[string][]string{{"apiKey": {string(Administrator)}}}
	text := "Role: administrator."
	if a.role != "" {
		op.Security = append(op.Security, map[string][]string{"apiKey": {string(a.role)}})
		text = map[Role]string{Researcher: "Role: researcher of the project, or administrator.",
			Notifier: "Role: notifier of the archive, or administrator."}[a.role]
	}
	op.Description += "\n\n" + text
}

// parameter describes a parameter in the document. The example is "" where the type says enough.
type parameter struct{ description, example string }
