// Command pending-work is the function of the assigner. It assigns work
// items to researchers. The minute's rule invokes it, and what makes something ready.
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
	boot.Start(system.PendingWork().Handle)
}
