package command

import (
	"fmt"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/ark"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// YesNo is a truth, for people.
func YesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// VersionText is the name of a version, as OCFL has it: v1, v2, …; "" for 0, which is none.
func VersionText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("v%d", n)
}

// ParseARK reads an ARK in any of its forms and returns the canonical one, which the API takes. It is Invalid if
// it is none; a wrong check character is no error.
func ParseARK(text string) (string, error) {
	id, err := ark.Parse(text)
	if err != nil {
		return "", fault.New(fault.Invalid, "%w", err)
	}
	return id.String(), nil
}

// StateStyle is the colour of a state, an outcome, a severity or a verdict: green for a good end, red for a bad
// one, yellow for what needs a person, blue for what goes on and for all that is unknown here.
func StateStyle(text string) terminal.Style {
	switch text {
	case v1.Completed, "success", "accepted", "valid":
		return terminal.Green
	case v1.Failed, "failure", "error", "rejected", "invalid":
		return terminal.Red
	case v1.Held, v1.Deleted, "warning":
		return terminal.Yellow
	}
	return terminal.Blue
}
