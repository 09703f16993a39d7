// Command completed-work is the function that stores what researchers report. The queue
// completed-work invokes it.
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
	boot.Start(system.CompletedWork().Handle)
}
