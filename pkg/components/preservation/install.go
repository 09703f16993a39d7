package preservation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"archivist/pkg/components/component"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// installed is the definition of a component that was installed last, by its digest: SHA-256 of its
// JSON, in hexadecimal.
type installed struct {
	table.Head
	Digest string `dynamo:"digest"`
}

// Install applies the definitions that ship with a release, each once: what a person has changed,
// paused or deleted since stays so until a release, or a setting, brings another definition. It may
// be called by several at once, and again. One that is refused does not stop the others: their
// errors are joined.
func Install(ctx context.Context, store *component.Store, all []component.Definition) error {
	var errs []error
	for _, d := range all {
		if err := install(ctx, store, d); err != nil {
			errs = append(errs, fmt.Errorf("component %s, which ships: %w", d.Name, err))
		}
	}
	return errors.Join(errs...)
}

// install applies a definition unless it is the one that was applied last. If it dies in between,
// the same definition is applied again, which changes nothing.
func install(ctx context.Context, store *component.Store, d component.Definition) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}

	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:])
	row := installed{Head: table.Head{PK: "SHIPPED", SK: "component#" + d.Name}}
	err = store.Table.Get(ctx, row.Key(), &row)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}

	if row.Digest == digest {
		return nil
	}

	_, err = store.Apply(ctx, d,
		component.By{Actor: "system", Reason: "It ships with this release."})
	if err != nil {
		return err
	}

	row.Digest = digest
	tx := store.Table.Begin(store.NewID())
	tx.InsertOrSave(&row)
	if err := tx.Commit(ctx); !fault.Is(err, fault.Stale) { // another has applied it too
		return err
	}
	return nil
}
