// Command pending-work is the function of the archivist of pending work.
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
	boot.Start(system.PendingWork().Handle)
}
