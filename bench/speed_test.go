package bench

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"archivist/pkg/kernel/fetch"
)

// BenchmarkDownload streams a file through every digest that is always computed,
// and lets curl and sha256sum do the same with one.
func BenchmarkDownload(b *testing.B) {
	const size = 512 << 20
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(rand.IntN(256))
	}
	src := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(size))
		for range size / len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	defer src.Close()
	client := fetch.New(fetch.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, rand.Float64)
	b.Run("archivist", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			d := fetch.NewDigester("md5") // as a depositor asked
			err := client.Get(b.Context(), src.URL, nil, func(s fetch.Stream) error {
				_, err := io.Copy(d, s)
				return err
			})
			if err != nil || d.Size != size {
				b.Fatalf("%d bytes, %v", d.Size, err)
			}
		}
	})
	b.Run("curl-sha256sum", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			if said, err := exec.Command("sh", "-c", "curl -sf "+src.URL+" | sha256sum").CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, said)
			}
		}
	})
}

// BenchmarkInit starts a function until it asks for its first event: our part of a cold
// start.
func BenchmarkInit(b *testing.B) {
	for _, name := range []string{"admin-action", "api", "run-stage", "scheduler"} {
		b.Run(name, func(b *testing.B) {
			program := filepath.Join(b.TempDir(), "bootstrap")
			build := exec.Command("go", "build", "-trimpath", "-tags", "lambda.norpc", "-ldflags", "-s -w", "-o",
				program, "../functions/"+name)
			build.Env = append(os.Environ(), "CGO_ENABLED=0")
			if said, err := build.CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, said)
			}
			asked := make(chan struct{}, 1)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			runtime := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				asked <- struct{}{}
				<-r.Context().Done()
			})}
			go func() { _ = runtime.Serve(l) }()
			defer runtime.Close()
			var took []time.Duration
			for b.Loop() {
				c := exec.Command(program)
				c.Env = []string{"AWS_LAMBDA_RUNTIME_API=" + l.Addr().String(), "AWS_REGION=us-east-1",
					"AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x",
					"ARCHIVIST_TIMING=production", "ARCHIVIST_STAGE=store", "ARCHIVIST_LIMITS={}"}
				started := time.Now()
				if err := c.Start(); err != nil {
					b.Fatal(err)
				}
				<-asked
				took = append(took, time.Since(started))
				_ = c.Process.Kill()
				_ = c.Wait()
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		})
	}
}
