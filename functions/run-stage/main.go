// Command run-stage is the function of one stage: the environment names which.
package main

import (
	"context"
	"log"
	"os"

	"archivist/pkg/boot"
)

func main() {
	system, err := boot.New(context.Background(), os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	handler, err := system.Stage()
	if err != nil {
		log.Fatal(err)
	}
	boot.Start(handler.Handle)
}
