package aip

import (
	"context"
	"slices"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
)

// Identity is an object's identifiers, owner and collection.
type Identity struct {
	Owner, Collection string
	LocalIDs          []string // all that the object ever had, in order, but for those that are withdrawn
	Withdrawn         []string // by corrections, in order
	Policies          inventory.Policies
}

// After are the local ids of the next version, which adds some and withdraws others. One that is added is
// withdrawn no more.
func (i Identity) After(added, withdrawn []string) (local, gone []string) {
	local = slices.DeleteFunc(union(i.LocalIDs, added), in(withdrawn))
	return local, slices.DeleteFunc(union(i.Withdrawn, withdrawn), in(local))
}

// union are the ids of two lists, each once.
func union(ids, more []string) []string {
	all := slices.Clone(ids)
	for _, id := range more {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all
}

func in(list []string) func(id string) bool {
	return func(id string) bool { return slices.Contains(list, id) }
}

// In reports whether the object is one of a collection.
func (i Identity) In(collection string) bool {
	return i.Owner == collection && i.Collection == collection
}

// Identity reads the object's owner, collection and local ids. An object that another
// software stored has none of these.
func (v Version) Identity(ctx context.Context) (id Identity, err error) {
	said := map[string][]string{}
	for _, name := range []string{ObjectName, OwnerName, MembershipName} {
		// A file that is missing says nothing: then the identity is empty, which callers look for.
		err := v.elements(ctx, name, said)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return id, err
		}
	}
	id = Identity{
		Owner:      first(said["owner"]),
		Collection: first(said["collection"]),
		LocalIDs:   separate(said["localIdentifier"]...),
		Withdrawn:  separate(said["withdrawnLocalIdentifier"]...),
	}
	id.Policies, err = v.policies(ctx)
	return id, err
}

// policies reads what was decided about the object.
func (v Version) policies(ctx context.Context) (p inventory.Policies, err error) {
	for _, file := range PolicyFiles {
		if !slices.Contains(v.Object.SystemFiles(v.Number), file.Name) {
			continue
		}

		said := map[string][]string{}
		if err := v.elements(ctx, file.Name, said); err != nil {
			return p, err
		}
		*file.Of(&p) = &inventory.Decision{
			Reason: first(said["reason"]),
			By:     first(said["by"]),
			At:     first(said[file.Since]),
			Until:  first(said["until"]),
		}
	}
	return p, nil
}

// separate splits lists of ids at semicolons. No id has a semicolon: see ingest.CheckLocalID.
func separate(lists ...string) (ids []string) {
	for id := range strings.SplitSeq(strings.Join(lists, ";"), ";") {
		id = strings.TrimSpace(id)
		if id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
