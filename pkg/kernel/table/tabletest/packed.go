package tabletest

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// packed is a row as bytes, which take a fifth of the memory of an Item: tables of a million rows are tried. It never
// changes, so the table and its indexes share it. "" is no row.
type packed string

// Each value begins with what it is. Texts are behind their length, lists behind their number of values.
const (
	isS = iota
	isN
	isB
	isTrue
	isFalse
	isNull
	isM
	isL
	isSS
	isNS
	isBS
)

// appendItem packs a row that is not nil.
func appendItem(to []byte, it Item) []byte {
	to = binary.AppendUvarint(to, uint64(len(it)))
	for name, v := range it {
		to = appendValue(appendText(to, name), v)
	}
	return to
}

func appendText[T string | []byte](to []byte, text T) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

func appendTexts[T string | []byte](to []byte, is byte, all []T) []byte {
	to = binary.AppendUvarint(append(to, is), uint64(len(all)))
	for _, text := range all {
		to = appendText(to, text)
	}
	return to
}

func appendValue(to []byte, v types.AttributeValue) []byte {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return appendText(append(to, isS), v.Value)
	case *types.AttributeValueMemberN:
		return appendText(append(to, isN), v.Value)
	case *types.AttributeValueMemberB:
		return appendText(append(to, isB), v.Value)
	case *types.AttributeValueMemberBOOL:
		if v.Value {
			return append(to, isTrue)
		}
		return append(to, isFalse)
	case *types.AttributeValueMemberNULL:
		return append(to, isNull)
	case *types.AttributeValueMemberM:
		return appendItem(append(to, isM), v.Value)
	case *types.AttributeValueMemberL:
		to = binary.AppendUvarint(append(to, isL), uint64(len(v.Value)))
		for _, x := range v.Value {
			to = appendValue(to, x)
		}
		return to
	case *types.AttributeValueMemberSS:
		return appendTexts(to, isSS, v.Value)
	case *types.AttributeValueMemberNS:
		return appendTexts(to, isNS, v.Value)
	case *types.AttributeValueMemberBS:
		return appendTexts(to, isBS, v.Value)
	}
	panic(fmt.Sprintf("tabletest: an attribute of type %T", v)) // the SDK has no others
}

// item is a copy of the row, of the caller; nil if there is none. With only, it has no other attributes.
func (p packed) item(only ...string) Item {
	if p == "" {
		return nil
	}
	r := reader(p)
	return r.item(only)
}

// reader is what is left of a row to be read.
type reader string

func (r *reader) number() int {
	n, at := uint64(0), 0
	for shift := 0; ; shift += 7 {
		b := (*r)[at]
		at++
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			*r = (*r)[at:]
			return int(n)
		}
	}
}

func (r *reader) text() string {
	n := r.number()
	text := (*r)[:n]
	*r = (*r)[n:]
	return string(text)
}

func (r *reader) texts() []string {
	all := make([]string, r.number())
	for i := range all {
		all[i] = r.text()
	}
	return all
}

func (r *reader) item(only []string) Item {
	n := r.number()
	it := make(Item, n)
	for range n {
		name := r.text()
		if v := r.value(); len(only) == 0 || slices.Contains(only, name) {
			it[name] = v
		}
	}
	return it
}

func (r *reader) value() types.AttributeValue {
	is := (*r)[0]
	*r = (*r)[1:]
	switch is {
	case isS:
		return &types.AttributeValueMemberS{Value: r.text()}
	case isN:
		return &types.AttributeValueMemberN{Value: r.text()}
	case isB:
		return &types.AttributeValueMemberB{Value: []byte(r.text())}
	case isTrue, isFalse:
		return &types.AttributeValueMemberBOOL{Value: is == isTrue}
	case isM:
		return &types.AttributeValueMemberM{Value: r.item(nil)}
	case isL:
		all := make([]types.AttributeValue, r.number())
		for i := range all {
			all[i] = r.value()
		}
		return &types.AttributeValueMemberL{Value: all}
	case isSS:
		return &types.AttributeValueMemberSS{Value: r.texts()}
	case isNS:
		return &types.AttributeValueMemberNS{Value: r.texts()}
	case isBS:
		all := make([][]byte, r.number())
		for i := range all {
			all[i] = []byte(r.text())
		}
		return &types.AttributeValueMemberBS{Value: all}
	}
	return &types.AttributeValueMemberNULL{Value: true}
}
