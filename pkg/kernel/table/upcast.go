package table

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"

	"archivist/pkg/kernel/fault"
)

// Schema is the version of the rows that this release writes. Raise it by one
// whenever an attribute gets another name, type or meaning, or when an earlier
// release would lose a new attribute that must not be lost, by writing the row as
// it knows it; and give the row's type an Upcast. Rows without a version (0) are
// from before there was one; they have the form of version 1.
//
// During a deployment both releases run: the earlier one refuses rows of the later
// one, and its work is retried. A return to an earlier release is possible only
// as long as no row was written in a later version.
const Schema = 1

const schemaName = "schema_no"

// ErrNewer is the cause of the error of a row that a newer release wrote.
var ErrNewer = errors.New("table: a row of a newer release")

// Item is a row as it is stored, before it is decoded.
type Item = map[string]types.AttributeValue

// Upcaster is a row type whose form has changed. Upcast changes an item of an
// earlier version into the present form. It is a pure function of the item, and is
// called only if from < Schema.
//
// Attributes that are changed in place (Tx.Count, Table.Change) cannot be upcast: they keep
// their names and meanings, or get new names. item is the caller's own copy. An error makes
// the row unreadable, and is reported with its version.
type Upcaster interface {
	Upcast(from int64, item Item) error
}

// notNewer is the condition under which a row may be changed in place. Its argument is
// Schema. An update knows nothing of the attributes that it does not name, and could leave a
// row of a newer form inconsistent.
const notNewer = "attribute_not_exists(" + schemaName + ") OR " + schemaName + " <= ?"

// damagedError is that of a row that cannot be decoded: it stays so, however often it is read.
type damagedError struct{ err error }

// Error says what is wrong with which row.
func (e *damagedError) Error() string { return e.err.Error() }

// Unwrap returns the error of the decoder.
func (e *damagedError) Unwrap() error { return e.err }

// Damage marks the error of a row that was read, and whose attributes mean nothing.
func Damage(err error) error { return &damagedError{err} }

// Damaged reports whether an error is of a row that is there, and cannot be decoded.
func Damaged(err error) bool {
	var damaged *damagedError
	return errors.As(err, &damaged)
}

// unmarshal reads the attributes of an item. Its error is a damagedError that names the row.
func unmarshal(item Item, row any) error {
	err := dynamo.UnmarshalItem(item, row)
	if err == nil {
		return nil
	}
	var k Head
	_ = dynamo.UnmarshalItem(Item{"pk": item["pk"], "sk": item["sk"]}, &k) // only for the message
	return &damagedError{fmt.Errorf("the row %s cannot be read: %w", k.Key(), err)}
}

// decode reads an item of the table into row. A row that a later release wrote is an
// Unavailable. row may be any struct of some attributes; only an Upcaster is upcast.
func decode(item Item, row any) error {
	from, err := schemaOf(item)
	if err != nil {
		return err
	}
	if up, ok := row.(Upcaster); ok && from < Schema {
		if err := up.Upcast(from, item); err != nil {
			return &damagedError{fmt.Errorf("table: a row of version %d: %w", from, err)}
		}
	}
	return unmarshal(item, row)
}

// schemaOf is the version of a row, 0 if it has none. The error of a newer one is an
// Unavailable, because it ends with the deployment: the work is done later, by the newer
// release.
func schemaOf(item Item) (from int64, err error) {
	v, ok := item[schemaName]
	if !ok {
		return 0, nil
	}

	if err := dynamo.Unmarshal(v, &from); err != nil {
		return 0, &damagedError{fmt.Errorf("table: %s: %w", schemaName, err)}
	}

	if from > Schema {
		var k Head
		_ = dynamo.UnmarshalItem(item, &k) // only for the message
		return 0, &fault.Error{
			Kind: fault.Unavailable,
			Err:  ErrNewer,
			Msg: fmt.Sprintf(
				"the row %s was written by a newer release (version %d; this one reads up to %d): deploy that "+
					"release, or wait until its deployment is complete", k.Key(), from, Schema),
		}
	}
	return from, nil
}

// decodeAll reads items into out, a pointer to a slice of rows. Items of an index have
// only some attributes, and no version: they are decoded without an upcast.
func decodeAll(items []Item, out any, index bool) error {
	slice := reflect.ValueOf(out).Elem()
	slice.SetZero() // an earlier try may have been cut off in the middle
	for _, item := range items {
		row := reflect.New(slice.Type().Elem())
		read := decode
		if index {
			read = unmarshal
		}
		if err := read(item, row.Interface()); err != nil {
			return err
		}
		slice.Set(reflect.Append(slice, row.Elem()))
	}
	return nil
}
