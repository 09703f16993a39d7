package api_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
)

// Every error response is a problem document. A program can decide by its type.
func Example() {
	handler := (&api.API{}).Handler()
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest("DELETE", "/v1/queue", nil))

	var p v1.Problem
	if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
		fmt.Println(err)
	}
	fmt.Println(answer.Code, p.Type)
	fmt.Println(p.Detail)
	// Output:
	// 405 urn:archivist:problem:method-not-allowed
	// the route has no method DELETE; it has GET, HEAD
}
