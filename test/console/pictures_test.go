package console_test

import (
	"os"
	"testing"

	"github.com/chromedp/chromedp"

	"archivist/test/browser"
)

// largestPicture bounds a picture of the documents, in bytes.
const largestPicture = 150 << 10

// TestPictures takes the pictures of the documents, of what plain texts a demo has:
//
//	go test ./test/console -browser -docs -run TestPictures
func TestPictures(t *testing.T) {
	w := of(t)
	if !*intoDocs {
		t.Skip("it takes pictures for the documents, with -docs")
	}
	operations, err := w.api.Operations(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	v := w.open(t, 1280, "light")
	for _, p := range []struct{ name, path, scheme string }{
		{"home", "", "light"},
		{"batch", "batches/" + w.failed.Batch, "light"},
		{"job", "jobs/" + w.failed.ID, "dark"},
		{"jobs", "jobs", "light"},
		{"queue", "queue", "dark"},
		{"operation", "operations/" + operations[0].ID, "light"},
	} {
		v.do(chromedp.EmulateViewport(1280, 800))
		v.goTo(p.path)
		if err := browser.Prefer(v.ctx, "prefers-color-scheme", p.scheme); err != nil {
			t.Fatal(err)
		}
		png, err := chromedp.Run(v.ctx, chromedp.CaptureScreenshot())
		if err != nil || len(png) > largestPicture {
			t.Fatalf("%s has %d bytes; %v", p.name, len(png), err)
		}
		if err := os.WriteFile(root+"/docs/images/console-"+p.name+".png", png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
