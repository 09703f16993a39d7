package aip

import (
	"context"

	"archivist/pkg/formats/erc"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
)

// Record reads what the inventory records of the object, without its versions. The
// version must be the newest. An object that names no collection is an Invalid: another software
// has stored it.
func (v Version) Record(ctx context.Context) (inventory.Record, error) {
	id, err := v.Identity(ctx)
	if err == nil && id.Collection == "" {
		err = fault.New(fault.Invalid, "%s is stored, but its system files name no collection",
			v.Object.ID)
	}

	if err != nil {
		return inventory.Record{}, err
	}

	said := map[string][]string{}
	if err := v.elements(ctx, ERCName, said); err != nil {
		return inventory.Record{}, err
	}
	return inventory.Record{First: v.Object.Job(1), Withdrawn: id.Withdrawn, Object: inventory.Object{
		ARK:        v.Object.ID,
		Collection: id.Collection,
		LocalIDs:   id.LocalIDs,
		Policies:   id.Policies,
		Title:      erc.Summary(said["what"]),
		Who:        erc.Summary(said["who"]),
		When:       erc.Summary(said["when"]),
		HeadOf:     v.Object.Head,
		Digest:     v.Object.Digest,
		Created:    v.Object.Versions[1].Created.UnixMilli(),
		Modified:   v.Object.Versions[v.Number].Created.UnixMilli(),
	}}, nil
}

// Row reads what the inventory records of the version. It reads the whole list of files, to count
// them.
func (v Version) Row(ctx context.Context) (row inventory.Version, err error) {
	row = inventory.Version{
		Number:  v.Number,
		Job:     v.Object.Job(v.Number),
		Created: v.Object.Versions[v.Number].Created.UnixMilli(),
	}

	row.Files, row.Bytes, err = v.Totals(ctx)
	if err != nil {
		return row, err
	}

	row.Digest, err = v.Root.VersionDigest(ctx, v.Object, v.Number)
	return row, err
}
