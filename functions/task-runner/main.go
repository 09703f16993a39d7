// Command task-runner is the function that runs the commands and scripts of tasks. They come from
// archives, so it has access to no more than the folder of runs in the work bucket and the
// secrets of tasks.
package main

import (
	"context"
	"log"
	"os"

	"archivist/pkg/app/boot"
)

func main() {
	f, err := boot.TaskRunner(context.Background(), os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	boot.Start(f.Handle)
}
