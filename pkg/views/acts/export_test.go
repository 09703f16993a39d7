package acts

import "slices"

// Checked reports whether the rules look at the events of a type of subjects.
func Checked(subject string) bool {
	for _, of := range subjects {
		if slices.Contains([]string{of.String()}, subject) {
			return true
		}
	}
	return false
}
