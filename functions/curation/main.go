// Command curation is the function that keeps curated episodes and clips, and looks at feeds.
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
	boot.Start(system.Curation().Handle)
}
