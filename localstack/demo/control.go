package demo

import (
	"encoding/json"
	"net/http"
	"sync"

	"archivist/localstack"
)

// control is what answers localstack.Control. A request to stop only closes Stopped: who has started the demo
// closes it, and that ends the connection, for which the client waits.
func (d *Demo) control() http.Handler {
	stopped := make(chan struct{})
	// Two people can ask at once.
	stop := sync.OnceFunc(func() { close(stopped) })
	d.Stopped = stopped
	mux := http.NewServeMux()
	mux.HandleFunc("POST /functions", func(w http.ResponseWriter, r *http.Request) {
		var f localstack.UserFunction
		err := json.NewDecoder(r.Body).Decode(&f)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}

		// A refusal is 422 with the reason as text, which localstack.Control makes the error of the command.
		arn, err := d.functions.add(r.Context(), f)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}

		_ = json.NewEncoder(w).Encode(map[string]string{"arn": arn})
	})

	mux.HandleFunc("POST /stop", func(_ http.ResponseWriter, r *http.Request) {
		stop()
		<-r.Context().Done() // the connection ends with the demo
	})

	return mux
}
