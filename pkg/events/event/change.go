package event

import (
	"bytes"
	"encoding/json"
	"strings"
)

// changed is what differs between the properties of a subject before and after a change, as JSON
// objects, "" for nothing. Properties are compared by their JSON, and one that is missing on a side
// is left out there.
func changed(before, after any) (was, isNow string, err error) {
	b, err := propertiesOf(before)
	if err != nil {
		return "", "", err
	}

	a, err := propertiesOf(after)
	if err != nil {
		return "", "", err
	}

	for name, value := range b {
		if bytes.Equal(value, a[name]) {
			delete(a, name)
			delete(b, name)
		}
	}

	if was, err = object(b); err != nil {
		return "", "", err
	}

	isNow, err = object(a)
	return was, isNow, err
}

// propertiesOf are the properties of a value that is a JSON object, by name; none for nil. Any
// other JSON is an error.
func propertiesOf(v any) (p map[string]json.RawMessage, err error) {
	if v == nil {
		return nil, nil
	}
	text, err := marshal(v)
	if err != nil {
		return p, err
	}
	err = json.Unmarshal([]byte(text), &p)
	return p, err
}

// object is the JSON object of properties, "" if there are none.
func object(p map[string]json.RawMessage) (string, error) {
	if len(p) == 0 {
		return "", nil
	}
	return marshal(p)
}

// marshal is JSON in which characters of HTML are as they are: escaped, they would take six
// bytes each, and exceed MaxDetail.
func marshal(v any) (string, error) {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(out.String(), "\n"), err
}
