package objects

import (
	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/ark"
	"archivist/pkg/kernel/fault"
)

// named names an object by its ARK, or by a local id in a collection. Commands embed it.
type named struct {
	Name       string `arg:"" name:"object" help:"ARK of an object, or with -c one of its local ids."`
	Collection string `short:"c" help:"Collection of the local id." placeholder:"NAME"`
}

// ark is the ARK of the object, in canonical form. A name that is an ARK is never taken for a local id. Without a
// collection it must be one: an Invalid says what else can be given. An unknown local id is a NotFound.
func (o named) ark(a *command.App) (string, error) {
	id, err := ark.Parse(o.Name)
	switch {
	case err == nil:
		return id.String(), nil
	case o.Collection == "":
		return "", fault.New(fault.Invalid, "%w; or give a local id with its collection: %q -c COLLECTION", err, o.Name)
	}

	found, err := a.Client.Objects(a.Ctx, v1.Filter{Collection: o.Collection, LocalID: o.Name, Limit: 1})
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", fault.New(fault.NotFound, "no object of the collection %s has the local id %q; archivist object "+
			"list -c %s lists them", o.Collection, o.Name, o.Collection)
	}
	return found[0].ARK, nil
}
