package console

import (
	"net/http"
	"slices"
)

// trouble is what a page says of a request that was not answered.
type trouble struct {
	Status int
	What   string // what happened
	Do     string // what to do
	// Again are the fields of a form that was not accepted, to be sent again.
	Again []field
	// To is where Again is sent to, below /console/.
	To string
	// SignIn: signing in helps. Back is the page to which one returns then, below /console/; "" = in another tab.
	SignIn bool
	Back   string
}

// field is a field of a form with its value.
type field struct{ Name, Value string }

// fields are the fields of the form that was sent, without its token.
func (v *visit) fields() (all []field) {
	for _, name := range slices.Concat(fieldNames, deedFields) {
		for _, value := range v.PostForm[name] {
			all = append(all, field{name, value})
		}
	}
	return all
}

// fieldNames are the fields that forms of the console have, but the token.
var fieldNames = []string{"action", "target", "job", "batch", "collection", "state", "before",
	"message", "keepOwnHolds", "reason", "until", "priority", "confirm", "step", "kind", "url",
	"digest", "filename", "type", "manifest", "upload", "file", "sentType", "sentName", "what",
	"who", "when", "where", "local", "primary",
	"mode", "note", "notification"}

// endedView says that the session has ended, with what was written into a form.
func endedView(v *visit) view {
	return view{Title: "Your session has ended", Body: trouble{Status: http.StatusUnauthorized,
		What: "Nobody is signed in any more.", Again: v.fields(), To: below(v.URL.Path),
		Do: "Sign in. What you wrote into a form is below: come back to this page to send " +
			"it again.",
		SignIn: true}}
}

// leadingView says that the session has ended, and leads to the sign-in and back to a page.
func leadingView(back string) view {
	return view{Title: "Your session has ended", Body: trouble{Status: http.StatusUnauthorized,
		What:   "Nobody is signed in any more.",
		Do:     "You are led to where you sign in, and then back here.",
		SignIn: true, Back: back}}
}
