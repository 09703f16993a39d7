// Command admin-action is the function of the state machine admin-action. The machine, which
// a person starts in the AWS console and the system for a bulk operation, invokes it for each
// step. It has the search index that is kept in a bucket: the doctor compares it with the objects.
package main

import (
	"context"
	"log"
	"os"

	"archivist/pkg/app/boot"
	"archivist/pkg/views/search/embedded"
)

func main() {
	system, err := boot.New(context.Background(), os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	boot.Start(system.AdminAction(embedded.Open).Handle)
}
