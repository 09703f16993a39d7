// Command task-control is the function of the state machine task-run that begins and ends
// attempts. It has the code that reads repositories: the files of a revision are packed when
// an attempt begins.
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
	control, err := system.TaskControl(kinds.Opener)
	if err != nil {
		log.Fatal(err)
	}
	boot.Start(control.Handle)
}
