// Command authorizer is the function that API Gateway asks whether the token of a call is good. It has neither the API
// nor its search index, so that it starts quickly.
package main

import (
	"context"
	"log"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"archivist/pkg/app/boot/authorizer"
)

func main() {
	f, err := authorizer.OnLambda(context.Background(), os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(f.Handle)
}
