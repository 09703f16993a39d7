// Command admin-action is the function of the state machine admin-action.
package main

import (
	"context"
	"log"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"archivist/pkg/boot"
)

func main() {
	system, err := boot.New(context.Background(), os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(system.AdminAction().Handle)
}
