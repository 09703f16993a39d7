package issuer

import (
	"crypto/rand"
	"math/big"
	"net/http"
	"net/url"
	"strings"
)

// letters are those of user codes: without vowels, so that they make no words.
const letters = "BCDFGHJKLMNPQRSTVWXZ"

// newUserCode makes a code that a person can type: XXXX-XXXX.
func newUserCode() string {
	var out strings.Builder
	for n := range 8 {
		if n == 4 {
			out.WriteByte('-')
		}
		at, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
		if err != nil {
			panic(err) // rand.Reader never fails
		}
		out.WriteByte(letters[at.Int64()])
	}
	return out.String()
}

// typed is a user code as it was typed: small letters and other signs between them are accepted.
func typed(text string) string {
	code := strings.Map(func(r rune) rune {
		if strings.ContainsRune(letters, r) {
			return r
		}
		return -1
	}, strings.ToUpper(text))
	if len(code) != 8 {
		return ""
	}
	return code[:4] + "-" + code[4:]
}

// newDevice begins the device flow.
func (i *Issuer) newDevice(w http.ResponseWriter, r *http.Request) {
	f, err := form(r)
	scopes := strings.Fields(f.Get("scope"))
	switch {
	case err != nil:
		refuse(w, "invalid_request", err.Error())
		return
	case f.Get("client_id") != ClientID:
		refuse(w, "invalid_client", "the client is not known here")
		return
	case !allowed(scopes):
		refuse(w, "invalid_scope", "expected scopes of "+strings.Join(Scopes(), " "))
		return
	}

	name, now := rand.Text()+rand.Text(), i.settings.Now()
	d := &device{client: ClientID, scopes: scopes, each: pollEach, userCode: newUserCode()}
	i.mu.Lock()
	i.devices.put(name, d, now, deviceLife)
	i.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{
		"device_code":      name,
		"user_code":        d.userCode,
		"verification_uri": i.settings.URL + "/device",
		"verification_uri_complete": i.settings.URL + "/device?" +
			url.Values{"user_code": {d.userCode}}.Encode(),
		"expires_in": int(deviceLife.Seconds()),
		"interval":   int(pollEach.Seconds()),
	})
}

// askDevice shows the page on which a person types the code that the device shows. A code in the
// URL is shown, too: the person compares it.
func (i *Issuer) askDevice(w http.ResponseWriter, r *http.Request) {
	show(w, http.StatusOK, page{Title: "Sign in a device", Action: "/device",
		Users: i.settings.Accounts.Users, Device: true,
		Code: typed(r.URL.Query().Get("user_code")),
		Text: "Compare the code with that which the command line shows. If it is another one, or if " +
			"you have not asked for it, refuse."})
}

// approve notes who has agreed, or that nobody has.
func (i *Issuer) approve(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		refusePage(w, "The form cannot be read.")
		return
	}

	user := i.settings.Accounts.user(r.PostForm.Get("user"))
	agrees := r.PostForm.Get("answer") == "yes"
	i.mu.Lock()
	d := i.waiting(typed(r.PostForm.Get("user_code")))
	if d != nil && (!agrees || user != nil) {
		d.denied, d.signedIn = !agrees, i.settings.Now()
		if agrees {
			d.user = user
		}
	}
	i.mu.Unlock()

	switch {
	case d == nil:
		refusePage(w, "No device waits with this code. It may have expired; start again there.")
	case !agrees:
		show(w, http.StatusOK, page{Title: "Refused", Text: "The device was refused."})
	case user == nil:
		refusePage(w, "There is no such user.")
	default:
		show(w, http.StatusOK, page{Title: "Signed in",
			Text: "The device goes on as " + user.Name + ". You can close this page."})
	}
}

// waiting is the device with a user code for which nobody has decided, or nil. There are at most
// some thousand, so it looks through all.
func (i *Issuer) waiting(userCode string) *device {
	now := i.settings.Now()
	for _, k := range i.devices {
		d := k.value
		if userCode != "" && d.userCode == userCode && now.Before(k.ends) && d.user == nil && !d.denied {
			return d
		}
	}
	return nil
}
