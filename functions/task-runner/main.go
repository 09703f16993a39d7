// Command task-runner is the function that runs the commands and scripts of tasks.
package main

import (
	"context"
	"log"
	"os"

	"archivist/pkg/boot"
)

func main() {
	f, err := boot.TaskRunner(context.Background(), os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	boot.Start(f.Handle)
}
