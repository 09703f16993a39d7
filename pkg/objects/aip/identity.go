package aip

import (
	"context"
	"strings"

	"archivist/pkg/kernel/fault"
)

// Identity is an object's identifiers, owner and collection.
type Identity struct {
	Owner, Collection string
	LocalIDs          []string // all that the object ever had, in order
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
		err := v.elements(ctx, name, said)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return id, err
		}
	}
	return Identity{
		Owner:      first(said["owner"]),
		Collection: first(said["collection"]),
		LocalIDs:   separate(said["localIdentifier"]...),
	}, nil
}

// separate splits lists of ids at semicolons.
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
