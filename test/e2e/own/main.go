// Command own is a consumer of events for the end-to-end tests, as somebody's own function.
package main

import (
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"archivist/test/e2e/users"
)

func main() {
	lambda.Start(users.Own(os.Getenv("USERS_FILE"), os.Getenv("USERS_API"), os.Getenv("USERS_TOKEN")))
}
