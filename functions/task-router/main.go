// Command task-router is the function by which the state machine task-run calls task-runner: for each archive in
// environments of its own.
package main

import (
	"context"
	"log"
	"os"

	"archivist/pkg/app/boot"
)

func main() {
	f, err := boot.TaskRouter(context.Background(), os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	boot.Start(f.Handle)
}
