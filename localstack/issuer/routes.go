package issuer

import (
	"net/http"
	"net/url"

	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
)

// New makes an issuer with new keys. An error is an Invalid: a setting is wrong.
func New(s Settings) (*Issuer, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Path != "" || access.CheckIssuer(s.URL) != nil {
		return nil, fault.New(fault.Invalid, "issuer: %q is not a URL like http://127.0.0.1:4581",
			s.URL)
	}
	if err := s.Accounts.check(); err != nil {
		return nil, err
	}
	if s.Life == 0 {
		s.Life = usualLife
	}

	i := &Issuer{settings: s, host: u.Host, codes: newExpiring[*code](), devices: newExpiring[*device](),
		grants: newExpiring[*grant]()}
	if i.keys, err = newKeys(); err != nil {
		return nil, err
	}

	i.mux = http.NewServeMux()
	// A page of another site must not press the buttons of ours.
	forms := http.NewCrossOriginProtection()
	i.mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	i.mux.HandleFunc("GET /keys", i.published)
	i.mux.HandleFunc("GET /authorize", i.askWho)
	i.mux.Handle("POST /authorize", forms.Handler(http.HandlerFunc(i.authorize)))
	i.mux.HandleFunc("POST /device_authorization", i.newDevice)
	i.mux.HandleFunc("GET /device", i.askDevice)
	i.mux.Handle("POST /device", forms.Handler(http.HandlerFunc(i.approve)))
	i.mux.HandleFunc("POST /token", i.token)
	i.mux.HandleFunc("POST /revoke", i.revoke)
	return i, nil
}

// largestForm is the most that is read of a request, in bytes.
const largestForm = 64 << 10

// ServeHTTP answers a request for the issuer's own host. A page of another site could reach it by
// another name that leads to this machine (DNS rebinding).
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Host != i.host {
		http.Error(w, "this is the issuer "+i.settings.URL, http.StatusMisdirectedRequest)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, largestForm)
	w.Header().Set("Cache-Control", "no-store")
	i.mux.ServeHTTP(w, r)
}

// discovery says where everything is.
func (i *Issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	at := i.settings.URL
	answer(w, http.StatusOK, map[string]any{
		"issuer":                        at,
		"jwks_uri":                      at + "/keys",
		"authorization_endpoint":        at + "/authorize",
		"token_endpoint":                at + "/token",
		"revocation_endpoint":           at + "/revoke",
		"device_authorization_endpoint": at + "/device_authorization",
		"response_types_supported":      []string{"code"},
		"response_modes_supported":      []string{"query"},
		"grant_types_supported": []string{
			byCode, byRefresh, byDevice, byClient},
		"code_challenge_methods_supported":      []string{"S256"},
		"scopes_supported":                      Scopes(),
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256"},
		"token_endpoint_auth_methods_supported": []string{
			"none", "client_secret_basic", "client_secret_post"},
		"authorization_response_iss_parameter_supported": true, // RFC 9207
	})
}

// published are the keys with which tokens are verified.
func (i *Issuer) published(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	set := i.keys.public(i.settings.Now())
	i.mu.Unlock()
	answer(w, http.StatusOK, set)
}
