// Command curation is the function that keeps curated episodes and clips, and looks at feeds.
// The queues of curated episodes and clips invoke it, and the minute's rule.
package main

import (
	"context"
	"log"
	"os"

	"archivist/pkg/app/boot"
)

func main() {
	system, err := boot.New(context.Background(), os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	boot.Start(system.Curation().Handle)
}
