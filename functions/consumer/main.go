// Command consumer is the function that runs consumers of events.
package main

import (
	"context"
	"log"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"archivist/pkg/boot"
	"archivist/pkg/search/embedded"
)

func main() {
	system, err := boot.New(context.Background(), os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(system.Consumer(embedded.Open).Handle)
}
