// Command run-component is the function of the state machine component-run. It has the
// signatures by which formats of files are identified, which no other function has.
package main

import (
	"context"
	"log"
	"os"

	"archivist/pkg/app/boot"
	"archivist/pkg/objects/formats/pronom"
)

func main() {
	system, err := boot.New(context.Background(), os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	boot.Start(system.Component(pronom.Open).Handle)
}
