package ingest_test

import (
	"fmt"

	"archivist/pkg/ingest"
)

func ExampleNumber() {
	for _, n := range []int64{0, 999, 1400, -1400, -999, 1 << 62} {
		fmt.Println(ingest.Number(n))
	}
	fmt.Println(ingest.Bytes(1), ingest.Bytes(1400))
	fmt.Println(ingest.Counted(1, "job"), ingest.Counted(1400, "failed job"))
	// Output:
	// 0
	// 999
	// 1,400
	// -1,400
	// -999
	// 4,611,686,018,427,387,904
	// 1 byte 1,400 bytes
	// 1 job 1,400 failed jobs
}
