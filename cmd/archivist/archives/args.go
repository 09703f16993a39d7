package archives

import (
	"strconv"
	"strings"

	"archivist/cmd/archivist/command"
)

// archiveName is the argument of most commands.
type archiveName struct {
	Archive string `arg:"" help:"Name of an archive."`
}

// because is why a person acts. It is required: the events keep it.
type because struct {
	Reason string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
}

// revisionArg is the argument of most commands.
type revisionArg struct {
	ID string `arg:"" name:"revision" help:"Archive and number of a revision, e.g. maps/12."`
}

// parse returns the archive and the number. The number is counted from 1.
func (r revisionArg) parse() (archive string, n int64, err error) {
	archive, text, _ := strings.Cut(r.ID, "/")
	n, err = strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || archive == "" {
		return "", 0, command.Usage("%q is no revision; expected ARCHIVE/NUMBER, e.g. maps/12", r.ID)
	}
	return archive, n, nil
}
