package erc_test

import (
	"fmt"
	"strings"

	"archivist/pkg/formats/erc"
)

// The package's ERC says what it can; its Dublin Core fills in the rest.
func Example() {
	best, err := erc.ReadERC(strings.NewReader("erc:\nwho: Lovelace, Ada\nwhat: (:unkn)\n"))
	if err != nil {
		fmt.Println(err)
	}
	rest, err := erc.ReadDC(strings.NewReader(
		`<dc xmlns="http://purl.org/dc/elements/1.1/"><creator>A. Lovelace</creator><title>Notes</title></dc>`))
	if err != nil {
		fmt.Println(err)
	}
	k := best.Or(rest)
	fmt.Println(k.Who, k.What)
	// Output: [Lovelace, Ada] [Notes]
}
