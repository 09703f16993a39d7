// Command consumer is the function that runs consumers of events. The relay invokes it
// asynchronously for one consumer and one partition of the log, and so does it itself, as
// long as there is more to do.
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
	boot.Start(system.Consumer(embedded.Open).Handle)
}
