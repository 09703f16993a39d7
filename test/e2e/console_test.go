package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"testing"

	"archivist/pkg/console/consoletest"
)

// visitor is a browser with its cookies.
type visitor struct {
	*testing.T
	http.Client
	at *url.URL // where it is
}

// open makes a request from where the browser is, and follows redirects. Answers are taken compressed.
func (v *visitor) open(to string, form url.Values) (status int, header http.Header, page string) {
	v.Helper()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	at, err := v.at.Parse(to)
	if err != nil {
		v.Fatal(err)
	}
	r, err := http.NewRequestWithContext(v.Context(), method, at.String(), strings.NewReader(form.Encode()))
	if err != nil {
		v.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Accept-Encoding", "gzip")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := v.Do(r)
	if err != nil {
		v.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.Header.Get("Content-Encoding") == "gzip" {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
			data, err = io.ReadAll(z)
		}
	}
	if err != nil {
		v.Fatalf("%s: %v", at, err)
	}
	v.at = resp.Request.URL
	return resp.StatusCode, resp.Header, string(data)
}

// press sends the first form of a page to an address that ends so, with fields.
func (v *visitor) press(page, to string, fields url.Values, marks ...string) string {
	v.Helper()
	form := consoletest.Form(v.T, page, to, marks...)
	if form == nil {
		v.Fatalf("%s has no form to %s with %v:\n%s", v.at, to, marks, page)
	}
	for name, values := range fields {
		form[name] = values
	}
	action := ""
	for n := range consoletest.Parse(v.T, page).Descendants() {
		if a := consoletest.Attr(n, "action"); n.Data == "form" && action == "" && strings.HasSuffix(a, to) {
			action = a
		}
	}
	status, _, page := v.open(action, form)
	if status != http.StatusOK {
		v.Fatalf("%s answers %d:\n%s", v.at, status, page)
	}
	return page
}

// link opens the first link, style or script of a page whose address has a part.
func (v *visitor) link(page, part string) (header http.Header, body string) {
	v.Helper()
	for n := range consoletest.Parse(v.T, page).Descendants() {
		to := consoletest.Attr(n, "href") + consoletest.Attr(n, "src")
		if strings.Contains(to, part) {
			status, header, body := v.open(to, nil)
			if status != http.StatusOK {
				v.Fatalf("%s answers %d:\n%s", v.at, status, body)
			}
			return header, body
		}
	}
	v.Fatalf("%s has no link with %s:\n%s", v.at, part, page)
	return nil, ""
}

// stageURL is the address of the stage, without a slash. On the emulator it is that by host names, as on AWS: by paths,
// what the function is told of its path is not what browsers see.
func stageURL() string {
	if inProcess() {
		return out.APIURL
	}
	return fmt.Sprintf("http://%s.execute-api.localhost:%d/prod", out.All["apiId"], stack.Port)
}

// loopback reaches names below localhost, which not every resolver knows (RFC 6761).
func loopback() http.RoundTripper {
	return &http.Transport{DialContext: func(ctx context.Context, network, at string) (net.Conn, error) {
		if host, port, err := net.SplitHostPort(at); err == nil && strings.HasSuffix(host, ".localhost") {
			at = net.JoinHostPort("127.0.0.1", port)
		}
		return new(net.Dialer).DialContext(ctx, network, at)
	}}
}

// TestConsole: behind the gateway's path, a browser that opens the address of the API comes to the console by its
// issuer, gets assets and pages as they are, compressed, acts with its own name, and signs out.
func TestConsole(t *testing.T) {
	begin(t)
	src := newSource(t)
	_, job := submit(t, src.put("/console.txt", []byte("content")), "object-manifest")
	until(t, "the job has failed", soon, func() bool { return jobOf(t, job).State == "Failed" })

	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	base := stageURL()
	at, err := url.Parse(base + "/")
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{T: t, Client: http.Client{Jar: jar, Transport: loopback()}, at: at}
	_, _, page := v.open("", nil)
	if v.at.Host != strings.TrimPrefix(tokens.url, "http://") {
		t.Fatalf("the browser is at %s, not at the issuer:\n%s", v.at, page)
	}
	page = v.press(page, "/authorize", url.Values{"user": {"olga"}, "answer": {"yes"}})
	if v.at.String() != base+"/console" || !strings.Contains(page, "<h1><bdi>Home</bdi></h1>") {
		t.Fatalf("after the sign-in the browser is at %s:\n%s", v.at, page)
	}
	home := page
	for _, name := range []string{"console.css", "htmx-2.0.11.js"} {
		want, err := os.ReadFile("../../pkg/console/assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		stem, _, _ := strings.Cut(name, ".")
		v.at, _ = v.at.Parse(base + "/console")
		header, got := v.link(home, "assets/"+stem)
		if got != string(want) || header.Get("Content-Encoding") != "gzip" ||
			!strings.Contains(header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s has %d bytes, %d are served: %v", name, len(want), len(got), header)
		}
	}

	v.at, _ = v.at.Parse(base + "/console")
	v.link(home, "jobs")
	// Tests beside this one submit, too: a job may not be on the first page of the list.
	_, header, page := v.open("search?"+url.Values{"q": {job}}.Encode(), nil)
	if !strings.Contains(page, "Failed") || v.at.String() != base+"/console/jobs/"+job ||
		!strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%s: %v\n%s", v.at, header, page)
	}
	reason := url.Values{"reason": {"A try"}, "priority": {"7"}}
	page = v.press(page, "/act", reason, "action=prioritize")
	page = v.press(page, "/act", url.Values{"step": {"do"}})
	if v.at.String() != base+"/console/jobs/"+job || jobOf(t, job).Priority != 7 {
		t.Errorf("%s; the job has the priority %d:\n%s", v.at, jobOf(t, job).Priority, page)
	}
	events, err := client.Events(t.Context(), job)
	if last := events[len(events)-1]; err != nil || last.Actor != `olga ("Olga")` {
		t.Errorf("%+v, %v", last, err)
	}

	page = v.press(page, "sign-out", nil)
	if v.at.String() != base+"/console/signed-out" || !strings.Contains(page, "You are signed out") {
		t.Errorf("%s:\n%s", v.at, page)
	}
	_, _, _ = v.open("jobs", nil)
	if v.at.Host != strings.TrimPrefix(tokens.url, "http://") {
		t.Errorf("after the sign-out the browser is at %s", v.at)
	}
}
