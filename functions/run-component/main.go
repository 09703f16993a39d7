// Command run-component is the function of the state machine component-run.
package main

import (
	"context"
	"log"
	"os"

	"archivist/pkg/boot"
	"archivist/pkg/formats/pronom"
)

func main() {
	system, err := boot.New(context.Background(), os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	boot.Start(system.Component(pronom.Open).Handle)
}
