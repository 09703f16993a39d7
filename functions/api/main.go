// Command api is the function that answers the HTTP API.
package main

import (
	"context"
	"log"
	"os"

	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"

	"archivist/pkg/boot"
	"archivist/pkg/search/embedded"
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
	boot.Start(httpadapter.New(handler).ProxyWithContext)
}
