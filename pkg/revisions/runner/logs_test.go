package runner

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
)

// TestLogs: pages of a log are the log, each part once; at the end there is nothing more.
func TestLogs(t *testing.T) {
	w := newWorld(t)
	logs := &Logs{w.work}
	const prefix = "runs/maps/7/build/1/"
	if parts, next, err := logs.Read(t.Context(), prefix, 0); err != nil || next != 0 || len(parts) != 0 {
		t.Errorf("of a run that has not begun: %v, %d, %v", parts, next, err)
	}
	if _, err := logs.Outputs(t.Context(), prefix); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	w.run(script("bash", `for i in {1..30}; do head -c 50000 /dev/zero | tr '\0' a; echo $i >&2; sleep .03; done
echo b >"$ARCHIVIST_OUTPUTS/b c"`))
	said, pages, next := "", 0, 0
	for {
		parts, n, err := logs.Read(t.Context(), prefix, next)
		if err != nil || n < next {
			t.Fatal(n, err)
		}
		if n == next {
			break
		}
		for _, p := range parts {
			said += p.Text
		}
		next, pages = n, pages+1
	}
	if said != w.output("") || len(said) < 30*50000 || pages < 2 || next != len(w.S3.Names("work/"+prefix+LogFolder)) {
		t.Errorf("%d pages to %d, %d bytes", pages, next, len(said))
	}

	all, err := logs.Outputs(t.Context(), prefix)
	if err != nil || len(all) != 1 || all[0].Path != "b c" {
		t.Errorf("%v, %v", all, err)
	}
	url, err := logs.Link(t.Context(), prefix, "b c", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if data, err := io.ReadAll(answer.Body); err != nil || string(data) != "b\n" || !strings.Contains(url, "b%2520c") {
		t.Errorf("%s: %q, %v", url, data, err)
	}
	for _, path := range []string{"../result", "x", ""} {
		if _, err := logs.Link(t.Context(), prefix, path, time.Minute); !fault.Is(err, fault.NotFound) ||
			!strings.Contains(err.Error(), `it has "b c"`) {
			t.Errorf("%s: %v", path, err)
		}
	}

	w.put(LogFolder+"x", nil)
	if _, _, err := logs.Read(t.Context(), prefix, next); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
}
