package archive

import (
	"context"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/workflow"
)

// endings are those of files of definitions.
var endings = []string{".yaml", ".yml", ".json"}

// IsWorkflow reports whether a path, from the root of the archive, is that of a file of
// definitions. Case counts.
func IsWorkflow(name string) bool {
	return strings.HasPrefix(name, workflow.Folder+"/") && slices.Contains(endings, path.Ext(name))
}

// Workflows collects the files of definitions of a revision, and holds them to the limits of
// package workflow. The zero value is empty.
type Workflows struct{ Files []workflow.File }

// Add adds a file, if it is one of definitions; read reads at most so many bytes of it, and is not
// called for others. A file or a number that is too large is an Invalid, which becomes a problem of
// the revision: one byte more than the limit is asked for, to see that.
func (w *Workflows) Add(name string, read func(most int64) ([]byte, error)) error {
	if !IsWorkflow(name) {
		return nil
	}

	if len(w.Files) == workflow.MaxFiles {
		return fault.New(fault.Invalid, "the folder %s has more than %d files of definitions",
			workflow.Folder,
			workflow.MaxFiles)
	}

	data, err := read(workflow.MaxFile + 1)
	if err != nil {
		return err
	}

	if len(data) > workflow.MaxFile {
		return fault.New(fault.Invalid, "%s has more than %d bytes", name, workflow.MaxFile)
	}

	w.Files = append(w.Files, workflow.File{Path: name, Data: data})
	return nil
}

// Sorted are the files in the order of their paths, whatever the order in which a kind of archive
// lists them.
func (w *Workflows) Sorted() []workflow.File {
	slices.SortFunc(w.Files,
		func(a, b workflow.File) int { return strings.Compare(a.Path, b.Path) })
	return w.Files
}

// Missing is the error of a revision that an archive does not have.
func Missing(l Location, n, head int64) error {
	return fault.New(fault.NotFound, "%s has no revision %d; its newest is %d", l, n, head)
}

// String names the archive in messages. It has no secret: see checkURL.
func (l Location) String() string {
	switch l.Kind {
	case Object:
		return "the object " + l.ARK
	case Git:
		return "the branch " + l.Branch + " of " + l.URL
	}
	return l.URL
}

// Credentials are the user and the password in the secret that a location names; ok is false if it
// names none. A secret that cannot be read is an Unavailable, since it may be changed or allowed
// later; one of another form is an Invalid. The password may contain colons.
func (l Location) Credentials(ctx context.Context,
	read func(context.Context, string) (string, error)) (
	user, password string, ok bool, err error) {
	if l.Secret == "" {
		return "", "", false, nil
	}

	value, err := read(ctx, l.Secret)
	if err != nil {
		return "", "", false,
			fault.New(fault.Unavailable, "the secret %s could not be read: %w", l.Secret, err)
	}

	user, password, ok = strings.Cut(strings.TrimSpace(value), ":")
	if !ok {
		return "", "", false,
			fault.New(fault.Invalid, "the secret %s does not have the form user:password", l.Secret)
	}
	return user, password, true, nil
}

// Refused is the error of a server that does not let the user of a location in: a Denied that says
// what to correct.
func (l Location) Refused() error {
	if l.Secret == "" {
		return fault.New(fault.Denied,
			"%s asks for a user and a password; the archive names none", l.URL)
	}
	return fault.New(fault.Denied,
		"%s refuses the user and password of the secret %s", l.URL, l.Secret)
}

// MaxMessage and MaxAuthor bound what is kept of a revision's message and author, in bytes.
const (
	MaxMessage = 10_000
	MaxAuthor  = 500
)

// Cut is a text as UTF-8, of at most so many bytes: it is cut between two characters, and what is
// no UTF-8 becomes U+FFFD.
func Cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// maxToken bounds a token in bytes.
const maxToken = 500

// Token is the value of the trailer TokenTrailer of a commit's message: a line of its last
// paragraph (git-interpret-trailers). "": there is none. Of several the last counts; the case of
// the name does not. A message of one paragraph has no trailers, and one that is longer than
// maxToken is none.
func Token(message string) (token string) {
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(message, "\r\n", "\n")), "\n")
	for _, line := range slices.Backward(lines) {
		if strings.TrimSpace(line) == "" {
			return token
		}
		name, value, found := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if found && token == "" && strings.EqualFold(strings.TrimSpace(name), TokenTrailer) &&
			len(value) <= maxToken {
			token = value
		}
	}
	return "" // the only paragraph is the subject
}
