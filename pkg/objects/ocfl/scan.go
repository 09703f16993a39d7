package ocfl

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// visitor has a function for each part of an inventory. They are called in the order of
// the file, so that an inventory of very many files is never in memory as a whole. Parts
// without a function are skipped. The first error of a function ends the reading, and is returned
// with the byte at which it arose.
type visitor struct {
	heads       func(n int) error    // the number of the newest version
	region      func(from, to int64) // where the manifest is, in bytes
	manifest    func(digest string, paths []string) error
	manifestEnd func() error
	begin       func(n int) error
	state       func(n int, digest string, paths []string) error
	end         func(n int, v Version) error
	fixity      func(algorithm, digest string, paths []string) error
}

// scanner reads one inventory (OCFL 1.1, section 3.5). Digests are sha512 in
// lower case hexadecimal.
type scanner struct {
	visitor
	dec  *jsontext.Decoder
	id   string
	head int
}

// scan reads an inventory as a stream. It checks only what its readers rely on: it does not
// validate the inventory.
func scan(in io.Reader, v visitor) (id string, head int, err error) {
	// Names are unique because digests and versions are; to remember them all
	// would hold the whole inventory.
	s := &scanner{visitor: v, dec: jsontext.NewDecoder(in, jsontext.AllowDuplicateNames(true))}
	err = s.object(s.member)
	if err == nil && (s.id == "" || s.head == 0) {
		err = errors.New("it has no id or no head")
	}

	if err != nil {
		return s.id, s.head, fmt.Errorf("ocfl: inventory at byte %d: %w", s.dec.InputOffset(), err)
	}
	return s.id, s.head, nil
}

// object reads an object member by member.
func (s *scanner) object(each func(name string) error) error {
	t, err := s.dec.ReadToken()
	if err != nil {
		return err
	}

	if t.Kind() != '{' {
		return fmt.Errorf("expected an object, found %s", t)
	}

	for s.dec.PeekKind() != '}' {
		t, err := s.dec.ReadToken()
		if err != nil {
			return err
		}
		if err := each(t.String()); err != nil {
			return err
		}
	}

	_, err = s.dec.ReadToken()
	return err
}

// value reads the next value as a whole: all paths of one digest at most.
func (s *scanner) value(into any) error { return json.UnmarshalDecode(s.dec, into) }

// member reads a member of the inventory. Unknown ones are skipped, as are type and
// digestAlgorithm.
func (s *scanner) member(name string) (err error) {
	switch name {
	case "id":
		return s.value(&s.id)
	case "head":
		var head string
		if err := s.value(&head); err != nil {
			return err
		}
		s.head, err = number(head)
		if err != nil || s.heads == nil {
			return err
		}
		return s.heads(s.head)
	case "manifest":
		return s.readManifest()
	case "versions":
		return s.object(s.version)
	case "fixity":
		return s.object(s.readFixity)
	}
	return s.dec.SkipValue()
}

// readManifest reads the manifest. Its region begins right after its name, and ends after its
// closing brace.
func (s *scanner) readManifest() error {
	from := s.dec.InputOffset()
	if err := s.block(s.manifest); err != nil {
		return err
	}

	if s.region != nil {
		s.region(from, s.dec.InputOffset())
	}

	if s.manifestEnd == nil {
		return nil
	}
	return s.manifestEnd()
}

func (s *scanner) readFixity(algorithm string) error {
	if s.fixity == nil {
		return s.dec.SkipValue()
	}
	return s.block(func(digest string,
		paths []string) error {
		return s.fixity(algorithm, digest, paths)
	})
}

// block reads digests with their paths.
func (s *scanner) block(each func(digest string, paths []string) error) error {
	if each == nil {
		return s.dec.SkipValue()
	}
	return s.object(func(digest string) error {
		var paths []string
		if err := s.value(&paths); err != nil {
			return err
		}
		return each(digest, paths)
	})
}

// version reads a version. end comes after all of its members, since their order is not fixed (OCFL
// 1.1, section 3.5).
func (s *scanner) version(name string) error {
	n, err := number(name)
	if err != nil {
		return err
	}

	if s.begin != nil {
		if err := s.begin(n); err != nil {
			return err
		}
	}

	var v Version
	err = s.object(func(name string) error { return s.versionMember(n, &v, name) })
	if err != nil || s.end == nil {
		return err
	}
	return s.end(n, v)
}

// versionMember reads a member of a version. The state may come before or after the others.
func (s *scanner) versionMember(n int, v *Version, name string) error {
	switch name {
	case "created":
		return s.value(&v.Created)
	case "message":
		return s.value(&v.Message)
	case "user":
		return s.value(&v.User)
	case "state":
		if s.state != nil {
			return s.block(func(digest string,
				paths []string) error {
				return s.state(n, digest, paths)
			})
		}
	}
	return s.dec.SkipValue()
}

// number of a version: 2 for "v2".
func number(name string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "v"))
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a version; expected v1, v2, …", name)
	}
	return n, nil
}
