// Package browser opens pages in Chromium, for tests, and notes what goes wrong in it.
//
//	ctx, wrong := browser.Open(t, tools, time.Minute, "http://127.0.0.1:4566/", 1280, "dark")
//	err := chromedp.Do(ctx, chromedp.Navigate("http://127.0.0.1:4566/docs"))
//
// The browser is a package of npm at an exact version, which the toolchain installs: it needs no rights on the machine,
// and is the same everywhere. By hand, the tests can be played with another one: -chromium /usr/bin/chromium.
package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"archivist/infra/toolchain"
)

var another = flag.String("chromium", "", "open pages in this program, with the fonts of this machine, instead of the "+
	"Chromium that the toolchain installs")

// Open opens Chromium for a limited time, with a window of a width in pixels, and a scheme of colours: light or dark.
// wrong returns what went wrong in it since the last call: errors on the console, of which a violation of a policy is
// one, and requests to addresses that do not begin as own.
func Open(t *testing.T, is toolchain.APITools, within time.Duration, own string, width int64, scheme string) (
	ctx context.Context, wrong func() []string) {
	t.Helper()
	if *another == "" && runtime.GOARCH != "amd64" {
		if os.Getenv("CI") != "" {
			t.Fatal("CI opens pages in a browser, and the package has Chromium for x86-64 only")
		}
		t.Skip("the package has Chromium for x86-64 only")
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(cmp.Or(*another, is.Chromium)), chromedp.Headless,
		chromedp.NoSandbox, chromedp.NoFirstRun}
	if *another == "" {
		options = append(options, chromedp.Env(is.Env...))
	}
	for _, flag := range []string{"no-zygote", "in-process-gpu", "disable-dev-shm-usage", "disable-webgl"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	prepare := func(ctx context.Context, _ *chromedp.Target) error {
		if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
			return err
		}
		if _, err := chromedp.Call(ctx, cdplog.Enable, cdp.Empty{}); err != nil {
			return err
		}
		return Prefer(ctx, "prefers-color-scheme", scheme)
	}
	if err := chromedp.Do(ctx, chromedp.Func(prepare), chromedp.EmulateViewport(width, 900)); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var noted []string
	err := chromedp.Listen(ctx, func(event any) {
		if what := trouble(event, own); what != "" {
			mu.Lock()
			defer mu.Unlock()
			noted = append(noted, what)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return ctx, func() []string {
		mu.Lock()
		defer mu.Unlock()
		all := noted
		noted = nil
		return all
	}
}

// Prefer sets a feature that a page asks the browser for, e.g. prefers-reduced-motion: reduce.
func Prefer(ctx context.Context, name, value string) error {
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: name, Value: value}}})
	return err
}

// Media shows the page as another medium does, e.g. print.
func Media(ctx context.Context, name string) error {
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: name})
	return err
}

// trouble says what an event of the browser tells of that should not be, "" for nothing.
func trouble(event any, own string) string {
	switch e := event.(type) {
	case *cdpruntime.EventExceptionThrown:
		return "exception: " + e.ExceptionDetails.Text
	case *cdpruntime.EventConsoleAPICalled:
		if e.Type == cdpruntime.ConsoleAPICalledTypeError || e.Type == cdpruntime.ConsoleAPICalledTypeWarning {
			args, _ := json.Marshal(e.Args)
			return "console: " + string(args)
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError {
			return "log: " + e.Entry.Text
		}
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, own) && !strings.HasPrefix(url, "data:") {
			return "request: " + url
		}
	}
	return ""
}
