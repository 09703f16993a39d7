package premis_test

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"archivist/pkg/formats/premis"
)

// An object, and one event that happened to it.
func Example() {
	book := premis.Identifier{Type: "ARK", Value: "ark:/99999/fk4tq65d6k"}
	var doc bytes.Buffer
	d := premis.New(&doc)
	if err := d.Object(premis.Object{Category: premis.Entity, IDs: []premis.Identifier{book}}); err != nil {
		fmt.Println(err)
	}
	d.Event(premis.Event{
		ID: premis.Identifier{Type: "local", Value: "1"}, Type: "accession", Time: time.UnixMilli(1_800_000_000_000),
		Detail: "The object was added to the inventory.", Outcome: premis.Success, Objects: []premis.Identifier{book},
	})
	if err := d.Close(); err != nil {
		fmt.Println(err)
	}

	_, text, _ := strings.Cut(doc.String(), "<object ")
	object, _, _ := strings.Cut(text, "</object>")
	fmt.Println("<object " + object + "</object>")
	// Output:
	// <object xsi:type="intellectualEntity">
	// <objectIdentifier>
	// <objectIdentifierType>ARK</objectIdentifierType>
	// <objectIdentifierValue>ark:/99999/fk4tq65d6k</objectIdentifierValue>
	// </objectIdentifier>
	// </object>
}
