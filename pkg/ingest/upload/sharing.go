package upload

import (
	"net/http"

	"archivist/pkg/kernel/cors"
)

// Sharing says what scripts of web pages may do in the work bucket: send files by signed requests. The headers are
// those that such a request can need, and the type that a browser adds to a file; it adds the length itself.
func Sharing(origins []string) cors.Policy {
	return cors.Policy{
		Origins: origins,
		Methods: []string{http.MethodPut},
		Headers: []string{"content-type", "x-amz-checksum-sha256"},
		Exposed: []string{"ETag", "x-amz-checksum-sha256"},
	}
}
