package console

import (
	"maps"
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
	// Thing is the page of what was to be acted on, below /console/; "" = it is not known.
	Thing string
	// SignIn: signing in helps. Back is the page to which one returns then, below /console/; "" = in another tab.
	SignIn bool
	Back   string
}

// field is a field of a form with its value.
type field struct{ Name, Value string }

// fields are the fields of the form that was sent, without its token, in the order of their names.
func (v *visit) fields() (all []field) {
	for _, name := range slices.Sorted(maps.Keys(v.PostForm)) {
		for _, value := range v.PostForm[name] {
			if name != "form" {
				all = append(all, field{name, value})
			}
		}
	}
	return all
}

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
