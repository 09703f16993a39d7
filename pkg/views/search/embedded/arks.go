package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/blevesearch/bleve/v2/numeric"
	index "github.com/blevesearch/bleve_index_api"

	"archivist/pkg/views/search"
)

// ARKs implements search.Index. It reads the ordered list of the documents' ids, so that a page costs
// the same wherever it is. A page may have fewer ARKs than ids, or none, and is the last only if next
// is "": ids of removed documents stay in the list until their segments are merged.
func (x *Index) ARKs(ctx context.Context, after string) (arks []string, next string, err error) {
	err = x.reading(ctx, func(reader index.IndexReader) error {
		ids, err := idsAfter(reader, after)
		if err != nil {
			return err
		}

		if len(ids) == search.MaxARKs {
			next = ids[len(ids)-1]
		}
		arks, err = kept(reader, ids)
		return err
	})
	return arks, next, err
}

// Modified implements search.Index.
func (x *Index) Modified(ctx context.Context, arks []string) (map[string]int64, error) {
	out := map[string]int64{}
	return out, x.reading(ctx, func(reader index.IndexReader) error {
		values, err := reader.DocValueReader([]string{modifiedName})
		if err != nil {
			return err
		}

		for _, ark := range arks {
			id, err := reader.InternalID(ark)
			if err != nil {
				return err
			}
			if id == nil {
				continue
			}

			err = values.VisitDocValues(id, func(_ string, term []byte) {
				// A number is there in several precisions; the whole one has no shift.
				n, err := numeric.PrefixCoded(term).Int64()
				if shift, _ := numeric.PrefixCoded(term).Shift(); err == nil && shift == 0 {
					out[ark] = int64(numeric.Int64ToFloat64(n))
				}
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// reading calls f with the newest snapshot. If nothing was indexed yet, it does not.
func (x *Index) reading(ctx context.Context, f func(index.IndexReader) error) error {
	snapshot, done, err := x.current(ctx)
	defer done()
	if err != nil || snapshot == nil {
		return err
	}

	store, err := snapshot.Advanced()
	if err != nil {
		return fmt.Errorf("search: %w", err)
	}

	reader, err := store.Reader()
	if err != nil {
		return fmt.Errorf("search: %w", err)
	}

	err = errors.Join(f(reader), reader.Close())
	if err != nil {
		return fmt.Errorf("search: %w", err)
	}
	return nil
}

// idsAfter are the next ids, also of documents that were removed and whose segments are not merged yet.
// after itself is left out, although the range of the list includes it.
func idsAfter(reader index.IndexReader, after string) (ids []string, err error) {
	list, err := reader.FieldDictRange("_id", []byte(after), nil)
	if err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, list.Close()) }()
	for len(ids) < search.MaxARKs {
		entry, err := list.Next()
		if err != nil || entry == nil {
			return ids, err
		}
		if entry.Term > after {
			ids = append(ids, entry.Term)
		}
	}
	return ids, nil
}

// kept are those ids that documents have. The index knows which documents are removed.
func kept(reader index.IndexReader, ids []string) (arks []string, err error) {
	list, err := reader.DocIDReaderOnly(ids)
	if err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, list.Close()) }()
	for {
		n, err := list.Next()
		if err != nil || n == nil {
			return arks, err
		}
		ark, err := reader.ExternalID(n)
		if err != nil {
			return nil, err
		}
		arks = append(arks, ark)
	}
}
