package aip

import (
	"context"
	"strings"

	"archivist/pkg/description"
	"archivist/pkg/fault"
	"archivist/pkg/inventory"
)

// Identity is whose object it is, and which.
type Identity struct {
	Owner, Collection string
	LocalIDs          []string // all that the object ever had, in order
}

// In reports whether the object is one of a collection.
func (i Identity) In(collection string) bool {
	return i.Owner == collection && i.Collection == collection
}

// Identity reads whose object it is and which local ids it has. An object that another
// software stored has none of this.
func (v Version) Identity(ctx context.Context) (id Identity, err error) {
	said := map[string][]string{}
	for _, name := range []string{"system/mrt-mom.txt", "system/mrt-owner.txt", "system/mrt-membership.txt"} {
		err := v.elements(ctx, name, said)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return id, err
		}
	}
	return Identity{Owner: first(said["owner"]), Collection: first(said["collection"]),
		LocalIDs: separate(said["localIdentifier"]...)}, nil
}

// separate gives the ids of lists that semicolons separate.
func separate(lists ...string) (ids []string) {
	for id := range strings.SplitSeq(strings.Join(lists, ";"), ";") {
		if id = strings.TrimSpace(id); id != "" {
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

// Record reads what the inventory records of the object, but for its versions. The
// version must be the newest.
func (v Version) Record(ctx context.Context) (inventory.Record, error) {
	id, err := v.Identity(ctx)
	if err == nil && id.Collection == "" {
		err = fault.New(fault.Invalid, "%s is stored, but does not say of which collection it is", v.Object.ID)
	}
	if err != nil {
		return inventory.Record{}, err
	}
	said := map[string][]string{}
	if err := v.elements(ctx, "system/mrt-erc.txt", said); err != nil {
		return inventory.Record{}, err
	}
	return inventory.Record{First: v.Object.Job(1), Object: inventory.Object{
		ARK: v.Object.ID, Collection: id.Collection, LocalIDs: id.LocalIDs,
		Title: description.Summary(said["what"]), Who: description.Summary(said["who"]),
		When:   description.Summary(said["when"]),
		HeadOf: v.Object.Head, Digest: v.Object.Digest,
		Created:  v.Object.Versions[1].Created.UnixMilli(),
		Modified: v.Object.Versions[v.Number].Created.UnixMilli(),
	}}, nil
}

// Row reads what the inventory records of the version.
func (v Version) Row(ctx context.Context) (row inventory.Version, err error) {
	row = inventory.Version{Number: v.Number, Job: v.Object.Job(v.Number),
		Created: v.Object.Versions[v.Number].Created.UnixMilli()}
	if row.Files, row.Bytes, err = v.Totals(ctx); err != nil {
		return row, err
	}
	row.Digest, err = v.Root.VersionDigest(ctx, v.Object, v.Number)
	return row, err
}
