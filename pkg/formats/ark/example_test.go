package ark_test

import (
	"fmt"

	"archivist/pkg/formats/ark"
)

// However an ARK is written, it has one canonical form.
func ExampleParse() {
	for _, text := range []string{
		"ark:/99999/fk4tq65d6k",
		"https://n2t.net/ark:99999/fk4-tq65-d6k",
		"doi:10.5072/1",
	} {
		a, err := ark.Parse(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(a, a.Valid())
	}
	// Output:
	// ark:/99999/fk4tq65d6k true
	// ark:/99999/fk4tq65d6k true
	// "doi:10.5072/1": an ARK has the form ark:/NAAN/name, e.g. ark:/99999/fk4tq65d6k
}

// A minted name is a shoulder, random characters and a check character.
func ExampleMint() {
	zero := func(int) int { return 0 }
	a := ark.Mint("99999", "fk4", zero)
	fmt.Println(a, a.Valid())
	// Output: ark:/99999/fk4000000000q true
}
