// Command task-control is the function of the state machine task-run that begins and ends attempts.
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
	control, err := system.TaskControl(kinds.Opener)
	if err != nil {
		log.Fatal(err)
	}
	boot.Start(control.Handle)
}
