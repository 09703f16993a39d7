package stage_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"archivist/pkg/ingest"
)

// TestSourceThatLimitsItsRate: a source that gives one file, and then asks to wait an hour
// before the next, is waited for as often as it has files: each wait follows progress.
func TestSourceThatLimitsItsRate(t *testing.T) {
	w := newTwins(t)
	const files = 14 // more than a download has tries
	if stage, _ := ingest.StageOf(ingest.Downloading); stage.Tries >= files {
		t.Fatalf("the download has %d tries", stage.Tries)
	}
	var rows []string
	for i := range files {
		rows = append(rows, fmt.Sprintf("%s/%d | | | | | %d |", w.Source.URL, i, i))
	}
	list, free := manifest("mrt-ingest-manifest", fileFields, rows...), 1
	w.Source.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/list":
			_, _ = out.Write([]byte(list))
		case r.Method == http.MethodHead:
			out.Header().Set("Content-Length", "7")
		case free == 0:
			out.Header().Set("Retry-After", "3600")
			out.WriteHeader(http.StatusTooManyRequests)
		default:
			free--
			_, _ = out.Write([]byte("content"))
		}
	})
	w.Stages.Parallel = 1

	id := w.Submit("list", func(b *ingest.Batch) { b.Payload.Type = ingest.TypeObjectManifest })
	waits := 0
	for at := time.Hour; waits < 2*files; at += time.Hour + time.Minute {
		w.Drive()
		w.Drive()
		if !w.Job(id).Deferred() {
			break
		}
		waits++
		free = 1
		now := func() time.Time { return time.Now().Add(at + time.Minute) }
		w.Machine.Queue.Now, w.Stages.Now = now, now
	}
	w.Ended(id, 1, false)
	if waits != files-1 {
		t.Errorf("the job was deferred %d times; expected %d", waits, files-1)
	}
}
