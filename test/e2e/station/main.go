// Command station is the runnable of components for the end-to-end tests, as somebody's own function.
package main

import (
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"archivist/test/e2e/users"
)

func main() { lambda.Start(users.Station(os.Getenv("USERS_FILE"))) }
