// Package collection keeps the profiles of collections: how submissions to a collection
// are ingested, and who is notified.
//
// A collection needs no profile: without one, the defaults apply. A profile is one row, and
// each change of it is an event.
package collection

import (
	"context"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest/notify"
	"archivist/pkg/ingest/policy"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
	"archivist/pkg/kernel/table"
)

type row struct {
	table.Head
	Number  int64 `dynamo:"version"` // of its events
	Profile `dynamo:"profile"`
	// Default is set if the collection has no profile of its own, only events.
	Default bool `dynamo:"profile_default,omitempty"`

	Requests registry.Requests `dynamo:"requests,omitempty"`
}

func subject(name string) event.Subject { return event.Subject{Type: event.Collection, ID: name} }
func key(name string) table.Key         { return subject(name).Key() }

// Store keeps profiles.
type Store struct {
	Table *table.Table
	NewID func() string
	// Plain allows callbacks to servers without TLS: on a local stack only.
	Plain bool
	// EZID is whether the deployment registers ARKs with EZID.
	EZID bool
	// Scanner is whether the deployment has a virus scanner.
	Scanner bool
	// Buckets are those that the deployment may read submitted content from.
	Buckets []string
	// Consumer returns an error if there is no consumer of that name. nil: none can be deferred.
	Consumer func(ctx context.Context, name string) error
}

// Profile reads a collection's profile; known says whether it has one of its own. A collection
// without one is no error: the profile is the default.
func (s Store) Profile(ctx context.Context, name string) (p Profile, known bool, err error) {
	var r row
	err = s.Table.Get(ctx, key(name), &r)
	if fault.Is(err, fault.NotFound) {
		return Profile{}, false, nil
	}
	return r.Profile, err == nil && !r.Default, err
}

// By says who puts a profile, and by which request.
type By = registry.By

// Put makes or replaces a collection's profile. The same profile again changes
// nothing, and so does the same request. A field that is not accepted is
// an Invalid; a Conflict keeps a legal hold or a retention.
func (s Store) Put(ctx context.Context, name string, p Profile, by By, now int64) error {
	if err := s.check(name, p); err != nil {
		return err
	}

	if err := s.checkDeferred(ctx, p.Defer); err != nil {
		return err
	}

	if p.Callback.Given() && p.Callback.Mode == "" {
		p.Callback.Mode = Required
	}

	return s.Table.Again(ctx, "the profile of "+name, func() error { return s.put(ctx, name, p, by, now) })
}

// put is one try of Put. A Stale means that another change was first.
func (s Store) put(ctx context.Context, name string, p Profile, by By, now int64) error {
	r, err := s.row(ctx, name)
	if err != nil {
		return err
	}

	if done, err := r.Requests.Done(by); done || err != nil {
		return err
	}

	p, err = p.after(r.Profile, name, time.UnixMilli(now))
	if err != nil {
		return err
	}
	if r.Rev > 0 && !r.Default && reflect.DeepEqual(r.Profile, p) {
		return registry.Note(ctx, s.Table, s.NewID(), &r, &r.Requests, by)
	}

	e := event.New{
		Type:      "collection.profile",
		Time:      now,
		Actor:     by.Actor,
		Component: "api",
		Detail:    p,
		Before:    r.Profile,
		After:     p,
	}

	r.Profile, r.Default, r.Requests = p, false, r.Requests.With(by)
	tx := s.Table.Begin(s.NewID())
	if err := save(tx, name, &r, e); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// row reads the row of a collection; its rev is 0 if there is none yet.
func (s Store) row(ctx context.Context, name string) (row, error) {
	r := row{Head: table.Head{PK: key(name).PK, SK: key(name).SK}}
	err := s.moveEvents(ctx, name)
	if err == nil {
		err = s.Table.Get(ctx, key(name), &r)
	}
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return r, err
}

// save puts a collection's row into tx, with its next event.
func save(tx *table.Tx, name string, r *row, e event.New) error {
	r.Number++
	tx.InsertOrSave(r)
	return event.Append(tx, subject(name), r.Number, e)
}

// Events lists the events of a collection's profile, oldest first.
func (s Store) Events(ctx context.Context, name, cursor string) ([]event.Row, string, error) {
	if err := s.moveEvents(ctx, name); err != nil {
		return nil, "", err
	}
	return event.Page(ctx, s.Table, subject(name), cursor)
}

// movedAtOnce is the number of events that one transaction moves: each takes two actions.
const movedAtOnce = table.MaxActions / 2

// moveEvents moves a collection's events to the partition of its row. Releases before
// 2026-11-22 kept them in a partition with the bare name of the collection, where they
// could collide with rows of the system ("SLOT", "SPACE"). After the move it costs one
// query that finds nothing.
func (s Store) moveEvents(ctx context.Context, name string) error {
	if !names.MatchString(name) {
		return nil // no collection can have this name; it may be a partition of other rows
	}
	for {
		var rows []event.Row
		_, err := s.Table.Page(ctx, table.Query{
			PK:     name,
			Prefix: event.Prefix,
			Limit:  movedAtOnce,
		}, &rows)
		if err != nil || len(rows) == 0 {
			return err
		}

		// An event is moved as a whole, and is at one of the two places at any moment.
		tx := s.Table.Begin(s.NewID())
		for _, old := range rows {
			moved := old
			moved.PK = key(name).PK
			tx.Insert(&moved)
			tx.Remove(&old)
		}

		// A Stale means that another request moved them meanwhile.
		if err := tx.Commit(ctx); err != nil && !fault.Is(err, fault.Stale) {
			return err
		}
	}
}

// Record puts an event of a collection into tx, whether the collection has a profile or not.
func (s Store) Record(ctx context.Context, tx *table.Tx, name string, e event.New) error {
	if err := CheckName(name); err != nil {
		return err
	}
	r, err := s.row(ctx, name)
	if err != nil {
		return err
	}
	// A row that is made for an event is no profile.
	r.Default = r.Default || r.Rev == 0
	return save(tx, name, &r, e)
}

// names are part of keys of rows, which are separated by "#".
var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// shoulders have the characters that NOID mints: digits, and letters but vowels, l and y.
var shoulders = regexp.MustCompile(`^[0-9bcdfghjkmnpqrstvwxz]{2,20}$`)

// CheckName returns an Invalid if no collection can have the name.
func CheckName(name string) error {
	if names.MatchString(name) {
		return nil
	}
	return fault.New(fault.Invalid,
		"name: %q: expected 1 to 100 letters, digits, dots, hyphens and underscores", name)
}

// check returns an Invalid that names the first field of a profile that is not accepted.
func (s Store) check(name string, p Profile) error {
	if err := CheckName(name); err != nil {
		return err
	}

	switch {
	case p.Priority != nil && (*p.Priority < 0 || *p.Priority > 999):
		return fault.New(fault.Invalid, "priority: %d: expected 0 (best) to 999", *p.Priority)
	case p.Shoulder != "" && !shoulders.MatchString(p.Shoulder):
		return fault.New(fault.Invalid,
			"shoulder: %q: expected 2 to 20 digits and consonants, e.g. fk4", p.Shoulder)
	case !slices.Contains([]Suppress{"", None, Partial, Full}, p.Suppress):
		return fault.New(fault.Invalid, "suppress: %q: expected none, partial or full", p.Suppress)
	}

	for _, to := range p.Notify {
		if err := notify.CheckAddress(to); err != nil {
			return fault.New(fault.Invalid, "notification: %w", err)
		}
	}
	if err := errors.Join(s.checkDeployed(p), p.Containers.check(), p.Formats.check(),
		p.Sources.check(s.Buckets)); err != nil {
		return err
	}
	return s.checkCallback(p.Callback)
}

// checkDeployed refuses what the deployment does not have: a registry, a scanner.
func (s Store) checkDeployed(p Profile) error {
	switch at := p.Register; {
	case p.Scan && !s.Scanner:
		return fault.New(fault.Invalid,
			"scan: this deployment has no virus scanner; it needs the setting scanFunction")
	case at != "" && at != RegisterEZID:
		return fault.New(fault.Invalid, "register: %q: expected %s or nothing", at, RegisterEZID)
	case at == RegisterEZID && !s.EZID:
		return fault.New(fault.Invalid,
			"register: this deployment registers no ARKs; it needs the setting ezid")
	}
	return nil
}

// MaxDeferred is how many consumers a profile can defer: each run reads the profile.
const MaxDeferred = 50

// checkDeferred refuses names that no consumer has.
func (s Store) checkDeferred(ctx context.Context, names []string) error {
	switch {
	case len(names) == 0:
		return nil
	case len(names) > MaxDeferred:
		return fault.New(fault.Invalid, "defer: %d consumers; at most %d are accepted", len(names),
			MaxDeferred)
	case s.Consumer == nil:
		return fault.New(fault.Invalid, "defer: consumers cannot be deferred here")
	}

	for _, name := range names {
		err := s.Consumer(ctx, name)
		if fault.Is(err, fault.NotFound) {
			return fault.New(fault.Invalid, "defer: %w; archivist consumer list shows all", err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Deferred are the consumers that do not handle a collection's events for now.
func (s Store) Deferred(ctx context.Context, name string) ([]string, error) {
	p, _, err := s.Profile(ctx, name)
	return p.Defer, err
}

// Policies are what the profiles of some collections say of the content of their objects, by their names. They are read
// at once.
func (s Store) Policies(ctx context.Context, names ...string) (map[string]policy.Collection, error) {
	keys := make([]table.Key, len(names))
	for i, name := range names {
		keys[i] = key(name)
	}

	rows, err := s.Table.Many(ctx, keys)
	if err != nil {
		return nil, err
	}

	of := map[string]policy.Collection{}
	for _, name := range names {
		raw, found := rows[key(name)]
		if !found {
			continue
		}
		var r row
		if err := raw.Decode(&r); err != nil {
			return nil, err
		}
		of[name] = r.Profile.Policy()
	}
	return of, nil
}
