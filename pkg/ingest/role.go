package ingest

import "archivist/pkg/kernel/fault"

// Role is what a caller may do. Each role may also do what the ones before it may.
type Role int

// The roles. The API gives every caller who has a key the role Administrator, until callers
// have accounts.
const (
	Viewer Role = iota
	Operator
	Administrator
)

// String returns the name of the role.
func (r Role) String() string { return [...]string{"viewer", "operator", "administrator"}[r] }

// needed is the lowest role for an action. What cannot be undone needs an administrator.
func needed(name ActionName) Role {
	if name == ActDelete || name == ActRepair {
		return Administrator
	}
	return Operator
}

// May returns a Denied if the role does not allow an action. All doors ask this function.
func (r Role) May(name ActionName) error {
	if least := needed(name); r < least {
		return fault.New(fault.Denied, "%s needs the role %s; you have the role %s", name, least, r)
	}
	return nil
}
