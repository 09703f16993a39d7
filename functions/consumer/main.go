// Command consumer is the function that runs consumers of events.
package main

import (
	"context"
	"log"
	"os"

	"archivist/pkg/boot"
	"archivist/pkg/search/embedded"
)

func main() {
	system, err := boot.New(context.Background(), os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	boot.Start(system.Consumer(embedded.Open).Handle)
}
