package consumer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// installed says which definition of a consumer that ships was applied last. The digest decides
// whether a release has brought another one; the present definition does not, since people may have
// changed it.
type installed struct {
	table.Head
	Name   string `dynamo:"consumer_name"`
	Digest string `dynamo:"digest"` // SHA-256 of the definition as JSON, in hexadecimal
}

// shelf is the partition of the table with these rows, one for each consumer, by name.
const shelf = "SHIPPED"

// Install applies the definitions that ship with a release, each once: what a person has changed,
// paused or deleted since stays so until a release brings another definition. It may be called by
// several at once, and again. One that is refused does not stop the others: their errors are
// joined.
func (s *Store) Install(ctx context.Context, shipped []Definition) error {
	rows, err := readAll[installed](ctx, s.Table, table.Query{PK: shelf})
	if err != nil {
		return err
	}

	have := map[string]installed{}
	for _, r := range rows {
		have[r.Name] = r
	}

	var errs []error
	for _, d := range shipped {
		r, known := have[d.Name]
		if !known {
			r = installed{Head: table.Head{PK: shelf, SK: d.Name}, Name: d.Name}
		}
		if err := s.install(ctx, d, r); err != nil {
			errs = append(errs, fmt.Errorf("consumer %s, which ships: %w", d.Name, err))
		}
	}
	return errors.Join(errs...)
}

// install applies a definition unless it is the one that was applied last. If it dies in between,
// the same definition is applied again, which changes nothing.
func (s *Store) install(ctx context.Context, d Definition, r installed) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}

	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:])
	if r.Digest == digest {
		return nil
	}

	if _, err := s.Apply(ctx, d, By{Actor: "system"}); err != nil {
		return err
	}

	r.Digest = digest
	tx := s.Table.Begin(s.NewID())
	tx.InsertOrSave(&r)
	return lostRace(tx.Commit(ctx)) // another has applied it too
}

// Uninstall deletes a consumer that was installed, because the settings of a deployment leave it
// out now. With others it is installed again. What it has not handled is lost to it. One that was
// never installed, or that a person has deleted, is not an error; nor is a repeated call.
func (s *Store) Uninstall(ctx context.Context, name string) error {
	var r installed
	err := s.Table.Get(ctx, table.Key{PK: shelf, SK: name}, &r)
	if fault.Is(err, fault.NotFound) {
		return nil
	}

	failed := func(err error) error {
		return fmt.Errorf("consumer %s, which does not ship any more: %w", name, err)
	}

	if err != nil {
		return failed(err)
	}

	err = s.Delete(ctx, name, true,
		By{Actor: "system", Reason: "the settings of the deployment leave it out"})
	if err != nil && !fault.Is(err, fault.NotFound) { // a person may have deleted it
		return failed(err)
	}

	tx := s.Table.Begin(s.NewID())
	tx.Remove(&r)
	return lostRace(tx.Commit(ctx)) // another has done it too
}
