// Command relay is the function that gives events their places in the log and wakes
// consumers. The table's stream invokes it with new events, and the minute's rule with none.
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
	boot.Start(system.Relay().Handle)
}
