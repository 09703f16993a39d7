package fetch

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"archivist/pkg/kernel/fault"
)

func TestRedact(t *testing.T) {
	const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.SECRET-_x"
	for raw, want := range map[string]string{
		"https://me:SECRET@host/a?X-Amz-Signature=SECRET#SECRET": "https://host/a?redacted",
		"https://SECRET@host/":                      "https://host/",
		"https://host/a;token=SECRET":               "https://host/a;token=redacted",
		"https://host/a;token=SECRET;v=SECRET/b":    "https://host/a;token=redacted;v=redacted/b",
		"https://host/a%3Btoken%3DSECRET/b":         "https://host/a%3Btoken%3Dredacted/b",
		"https://host/access_token=SECRET/b":        "https://host/access_token=redacted/b",
		"https://host/Sig=SECRET":                   "https://host/Sig=redacted",
		"https://host/" + jwt + "/a.pdf":            "https://host/redacted/a.pdf",
		"https://host/a b/ü;k=SECRET":               "https://host/a%20b/%C3%BC;k=redacted",
		"http:SECRET@host/a":                        unreadable,
		"SECRET:SECRET@host/a":                      unreadable,
		"https://host/%zz?SECRET":                   unreadable,
		"s3://bucket/key?versionId=SECRET":          "s3://bucket/key?redacted",
		"https://host/a;b.pdf":                      "https://host/a;b.pdf",
		"https://host/a%2Fb/c+d/e=f/tokens/key.pdf": "https://host/a%2Fb/c+d/e=f/tokens/key.pdf",
	} {
		got := Redact(raw)
		if got != want || strings.Contains(got, "SECRET") {
			t.Errorf("%s became %s, want %s", raw, got, want)
		}
		if again := Redact(got); got != unreadable && again != got {
			t.Errorf("%s became %s the second time", got, again)
		}
	}
}

func TestRedactText(t *testing.T) {
	for text, want := range map[string]string{
		`Get "https://me:SECRET@host/a;token=SECRET?sig=SECRET#SECRET": EOF`: `Get "https://host/a;token=redacted?redacted": EOF`,
		`failed; size = 3; is it up? try again`:                              `failed; size = 3; is it up? try again`,
		`/token=SECRET/b and /%zz?SECRET`:                                    `/token=redacted/b and /%zz?redacted`,
		`mail me@example.org`:                                                `mail me@example.org`,
	} {
		if got := RedactText(text); got != want {
			t.Errorf("%s became %s", text, got)
		}
	}
}

// FuzzRedact: credentials, query and fragment never stay, and redacting twice is
// redacting once.
func FuzzRedact(f *testing.F) {
	f.Add("user", "pw", "/a;token=x/b", "q=1", "frag")
	f.Add("", "", "/%2F;%zz", "a", "b")
	f.Fuzz(func(t *testing.T, user, password, path, query, fragment string) {
		u := url.URL{Scheme: "https", User: url.UserPassword(user+"SECRET", password+"SECRET"), Host: "host",
			Path: "/" + path, RawQuery: query + "SECRET", Fragment: fragment + "SECRET"}
		got := Redact(u.String())
		if strings.Count(got, "SECRET") > strings.Count(path, "SECRET") {
			t.Errorf("%s became %s", u.String(), got)
		}
		if got != unreadable && Redact(got) != got {
			t.Errorf("%s became %s, then %s", u.String(), got, Redact(got))
		}
	})
}

// TestErrorsHaveNoSecrets: whatever goes wrong with a request, its error has neither the
// URL's secrets nor those of the redirect that failed.
func TestErrorsHaveNoSecrets(t *testing.T) {
	for name, location := range map[string]string{
		"refused":        "http://me:SECRET@10.0.0.1/x;token=SECRET?sig=SECRET",
		"unreadable":     "http://me:SECRET@host/%zz?sig=SECRET",
		"relative":       "/%zz;token=SECRET?sig=SECRET",
		"other scheme":   "ftp://me:SECRET@host/?sig=SECRET",
		"no such host":   "http://me:SECRET@host.invalid./?sig=SECRET",
		"too many times": "/again?sig=SECRET",
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", location)
				w.WriteHeader(http.StatusFound)
			}))
			defer srv.Close()
			err := local("127.0.0.0/8").Get(t.Context(), srv.URL+"/a;token=SECRET?sig=SECRET", nil,
				func(Stream) error { return nil })
			var e *fault.Error
			if !errors.As(err, &e) || strings.Contains(err.Error(), "SECRET") ||
				!strings.HasPrefix(e.Msg, srv.URL+"/a;token=redacted?redacted: ") {
				t.Errorf("%v", err)
			}
		})
	}
}
