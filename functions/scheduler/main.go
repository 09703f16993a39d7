// Command scheduler is the function that runs the gates and the sweep. The minute's rule
// invokes it, its queue of wake-ups, and the end of an execution that was aborted.
package main

import (
	"context"
	"log"
	"os"

	"archivist/pkg/app/boot"
)

func main() {
	system, err := boot.New(context.Background(), os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	boot.Start(system.Scheduler().Handle)
}
