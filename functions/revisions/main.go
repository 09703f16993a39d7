// Command revisions is the function that manages the revision queue.
package main

import (
	"context"
	"log"
	"os"

	"archivist/pkg/archive/kinds"
	"archivist/pkg/boot"
)

func main() {
	system, err := boot.New(context.Background(), os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	boot.Start(system.Revisions(kinds.Opener).Handle)
}
