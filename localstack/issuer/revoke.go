package issuer

import "net/http"

// revoke ends a grant by its refresh token (RFC 7009), also by one that was replaced. A token that is not known
// is answered alike: it is not valid afterwards. An access token cannot be revoked: it ends soon.
func (i *Issuer) revoke(w http.ResponseWriter, r *http.Request) {
	f, err := form(r)
	if err != nil {
		refuse(w, "invalid_request", err.Error())
		return
	}
	if f.Get("client_id") != ClientID {
		refuse(w, "invalid_client", "the client is not known here")
		return
	}

	i.mu.Lock()
	if g, _ := i.grantOf(f.Get("token"), ClientID); g != nil {
		delete(i.grants, g.id)
	}
	i.mu.Unlock()
	w.WriteHeader(http.StatusOK)
}
