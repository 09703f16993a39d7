// Command run-stage is the function of one stage: the environment names which. It is deployed
// once for each stage, and invoked by the stage's queue with one message at a time.
package main

import (
	"context"
	"log"
	"os"

	"archivist/pkg/app/boot"
	"archivist/pkg/objects/formats/pronom"
)

func main() {
	system, err := boot.New(context.Background(), os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	handler, err := system.Stage(pronom.OpenBrief)
	if err != nil {
		log.Fatal(err)
	}
	boot.Start(handler.Handle)
}
