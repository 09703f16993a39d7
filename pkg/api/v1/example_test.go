package v1_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// The failed jobs of a collection, and what is wrong with each.
func ExampleClient() {
	archive := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("state") != v1.Failed {
			http.Error(w, `{"detail": "there is no such list"}`, http.StatusNotFound)
			return
		}
		fmt.Fprint(w, `{"items": [{"id": "01M7ZBMEYHBB62YP6RY21T1GQ6-00002", "message": "404 Not Found"}]}`)
	}))
	defer archive.Close()
	c := &v1.Client{URL: archive.URL, HTTP: http.DefaultClient}

	jobs, err := c.Jobs(context.Background(), v1.Filter{Collection: "maps", State: v1.Failed})
	for _, job := range jobs {
		fmt.Println(job.ID, v1.KindOf(job.ID), job.Message, err)
	}

	_, err = c.Jobs(context.Background(), v1.Filter{Collection: "maps"})
	fmt.Println(err, fault.Of(err))
	// Output:
	// 01M7ZBMEYHBB62YP6RY21T1GQ6-00002 job 404 Not Found <nil>
	// there is no such list NotFound
}
