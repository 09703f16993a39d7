package signin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"archivist/pkg/kernel/fault"
)

// Session is what is kept of a sign-in: for one API, with what refreshes it.
type Session struct {
	API      string `json:"api"`
	Issuer   string `json:"issuer"`
	ClientID string `json:"clientId"`
	Tokens
}

// Store keeps sessions in files, one for each API, that only their owner can read.
type Store struct{ Dir string }

// lockEach is how often a lock that another process has is tried again.
const lockEach = 20 * time.Millisecond

// path is the file of the session of an API.
func (s Store) path(api string) string {
	sum := sha256.Sum256([]byte(strings.TrimSuffix(api, "/")))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:16])+".json")
}

// Load reads the session of an API; a NotFound if there is none. A file that others can read is
// Denied: they may have the tokens.
func (s Store) Load(api string) (out Session, err error) {
	path := s.path(api)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return out, fault.New(fault.NotFound, "nobody is signed in at %s", api)
	}
	if err != nil {
		return out, err
	}
	defer f.Close()

	info, err := f.Stat()
	if err != nil {
		return out, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return out, fault.New(fault.Denied,
			"others can read the session in %s; sign out and in again", path)
	}
	err = json.NewDecoder(f).Decode(&out)
	if err != nil || out.API != strings.TrimSuffix(api, "/") { // what is in it is not quoted: it is secret
		return Session{}, fault.New(fault.Denied,
			"the session in %s cannot be read; sign in again", path)
	}
	return out, nil
}

// Has reports whether there is a session of an API, whether or not it can be used.
func (s Store) Has(api string) bool {
	_, err := os.Stat(s.path(api))
	return err == nil
}

// Save keeps a session, in place of one of the same API. A crash leaves the one before or this one.
// It is called with the lock.
func (s Store) Save(session Session) (err error) {
	session.API = strings.TrimSuffix(session.API, "/")
	data, err := json.Marshal(session)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(s.Dir, "new-*") // of the mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.path(session.API))
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// Remove removes the session of an API, if there is one. It is called with the lock.
func (s Store) Remove(api string) error {
	err := os.Remove(s.path(api))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Locked does something with the session of an API while no other process does. It makes the folder.
// The file of the lock stays: one who removes it could take the lock from two others.
func (s Store) Locked(ctx context.Context, api string, do func() error) (err error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(s.Dir, 0o700); err != nil { // #nosec G302 -- a folder
		return err
	}
	lock := flock.New(s.path(api)+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockEach); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return do()
}
