// Command admin-action is the function of the state machine admin-action. The machine, which
// a person starts in the AWS console and the system for a bulk operation, invokes it for each
// step.
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
	boot.Start(system.AdminAction().Handle)
}
