package issuer

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// device begins the device flow.
func (w *world) device() (name, userCode string) {
	w.t.Helper()
	got := w.post("/device_authorization", url.Values{"client_id": {ClientID}, "scope": {"openid offline_access"}})
	var d struct {
		Name     string `json:"device_code"`
		UserCode string `json:"user_code"`
		URL      string `json:"verification_uri"`
		Both     string `json:"verification_uri_complete"`
		Interval int
		Expires  int `json:"expires_in"`
	}
	err := json.Unmarshal(got.Body.Bytes(), &d)
	if err != nil || got.Code != http.StatusOK || d.URL != home+"/device" ||
		d.Both != d.URL+"?user_code="+d.UserCode || d.Interval != 5 || d.Expires != 600 ||
		!regexp.MustCompile(`^[B-Z]{4}-[B-Z]{4}$`).MatchString(d.UserCode) {
		w.t.Fatalf("%d %s, %v", got.Code, got.Body, err)
	}
	return d.Name, d.UserCode
}

// poll asks for the tokens of a device, some time later.
func (w *world) poll(name string, later time.Duration) (tokens, string) {
	w.t.Helper()
	w.now = w.now.Add(later)
	return w.token(url.Values{"grant_type": {byDevice}, "device_code": {name}, "client_id": {ClientID}})
}

// TestDevice: a device waits until a person agrees elsewhere; it is told to ask less often.
func TestDevice(t *testing.T) {
	w := begin(t)
	name, userCode := w.device()
	_, no := w.poll(name, 0)
	w.want("nobody yet", no, "authorization_pending")
	_, no = w.poll(name, 4*time.Second)
	w.want("too soon", no, "slow_down")
	_, no = w.poll(name, 9*time.Second)
	w.want("too soon for the longer time", no, "slow_down")
	_, no = w.poll(name, 15*time.Second)
	w.want("in time", no, "authorization_pending")
	if page := w.get("/device", url.Values{"user_code": {userCode}}); !strings.Contains(page.Body.String(), userCode) {
		t.Errorf("%s", page.Body)
	}
	small := strings.ToLower(strings.ReplaceAll(userCode, "-", " "))
	agree := func(code, user, answer string) int {
		return w.post("/device", url.Values{"user_code": {code}, "user": {user}, "answer": {answer}}).Code
	}
	for name, code := range map[string]int{"another code": agree("BBBB-BBBB", "vera", "yes"),
		"no code": agree("", "vera", "yes"), "nobody": agree(userCode, "nobody", "yes")} {
		if code != http.StatusBadRequest {
			t.Errorf("%s: %d", name, code)
		}
	}
	if code := agree(small, "vera", "yes"); code != http.StatusOK {
		t.Errorf("agreed: %d", code)
	}
	if code := agree(userCode, "alma", "yes"); code != http.StatusBadRequest {
		t.Errorf("agreed twice: %d", code)
	}
	got, no := w.poll(name, 15*time.Second)
	w.want("agreed", no, "")
	w.want("the API", w.is(got.Access), "vera viewer")
	_, no = w.poll(name, 15*time.Second)
	w.want("twice", no, "invalid_grant")
	_, no = w.token(refresh(got.Refresh))
	w.want("refreshed", no, "")

	name, userCode = w.device()
	agree(userCode, "", "no")
	_, no = w.poll(name, 0)
	w.want("refused", no, "access_denied")

	name, userCode = w.device()
	_, no = w.poll(name, 10*time.Minute)
	w.want("too late", no, "expired_token")
	if code := agree(userCode, "vera", "yes"); code != http.StatusBadRequest {
		t.Errorf("agreed too late: %d", code)
	}
	_, no = w.read(w.post("/device_authorization", url.Values{"client_id": {"harvester"}}))
	w.want("another client", no, "invalid_client")
	_, no = w.read(w.post("/device_authorization", url.Values{"client_id": {ClientID}, "scope": {"admin"}}))
	w.want("another scope", no, "invalid_scope")
}
