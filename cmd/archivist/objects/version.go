package objects

import (
	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
)

// version names a version of an object, the newest by default. Commands that are about files of a version embed
// it.
type version struct {
	named
	Number int `name:"number" help:"Number of the version; the newest if it is left out." placeholder:"N"`
}

// find reads the object and determines the version: the newest if none is named, which v has afterwards. So all
// requests of a command are about the same version, even if a new one is stored meanwhile. Whether a named one
// exists is found by the next request.
func (v *version) find(a *command.App) (v1.Object, error) {
	id, err := v.ark(a)
	if err != nil {
		return v1.Object{}, err
	}
	o, err := a.Client.Object(a.Ctx, id)
	if v.Number == 0 {
		v.Number = o.Version
	}
	return o, err
}

// files reads the object and the version's files, by path, the system files last.
func (v *version) files(a *command.App) (v1.Object, []v1.File, error) {
	o, err := v.find(a)
	if err != nil {
		return o, nil, err
	}
	files, err := a.Client.Files(a.Ctx, o.ARK, v.Number)
	return o, files, err
}
