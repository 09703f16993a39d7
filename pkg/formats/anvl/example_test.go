package anvl_test

import (
	"fmt"
	"os"
	"strings"

	"archivist/pkg/formats/anvl"
)

func ExampleRead() {
	const text = "who: Lovelace, Ada\nwhat: Notes upon the memoir\n  by the Translator\n"
	elements, err := anvl.Read(strings.NewReader(text))
	for _, e := range elements {
		fmt.Printf("%s = %q\n", e.Name, e.Value)
	}
	fmt.Println(err)
	// Output:
	// who = "Lovelace, Ada"
	// what = "Notes upon the memoir by the Translator"
	// <nil>
}

func ExampleWrite() {
	err := anvl.Write(os.Stdout, anvl.Element{Name: "what", Value: "Notes"}, anvl.Element{Name: "when"})
	fmt.Println(err)
	fmt.Println(anvl.Write(os.Stdout, anvl.Element{Name: "who", Value: "two\nlines"}))
	// Output:
	// what: Notes
	// <nil>
	// anvl: the value of who has a line break
}
