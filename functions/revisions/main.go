// Command revisions is the function that manages the revision queue. The minute's rule
// invokes it, a notice of a revision, and the end of a task. It has the code that reads
// repositories.
package main

import (
	"context"
	"log"
	"os"

	"archivist/pkg/app/boot"
	"archivist/pkg/revisions/archive/kinds"
)

func main() {
	system, err := boot.New(context.Background(), os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	boot.Start(system.Revisions(kinds.Opener).Handle)
}
