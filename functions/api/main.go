// Command api is the function that answers the HTTP API. API Gateway invokes it for each
// request. It has the search index that is kept in a bucket, and no code that reads
// repositories.
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
	handler, err := system.API(embedded.Open)
	if err != nil {
		log.Fatal(err)
	}
	boot.Start(handler.Handle)
}
