// Command scheduler is the function that runs the gates and the sweep.
package main

import (
	"context"
	"log"
	"os"

	"archivist/pkg/boot"
)

func main() {
	system, err := boot.New(context.Background(), os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	boot.Start(system.Scheduler().Handle)
}
