package access

import (
	"encoding/base64"
	"strings"
)

// Credentials reads one value of the header Authorization: the token of the scheme Bearer (RFC 6750), or the password
// and the user of the scheme Basic (RFC 7617). ok is false for all other schemes, and for what is not of its form.
// Nothing of it is verified; a token may be "".
func Credentials(header string) (token, name string, ok bool) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(header), " ")
	rest = strings.TrimSpace(rest)
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		return rest, "", true
	case strings.EqualFold(scheme, "Basic"):
		data, err := base64.StdEncoding.DecodeString(rest)
		name, token, ok = strings.Cut(string(data), ":")
		if err != nil || !ok {
			return "", "", false
		}
		return token, name, true
	}
	return "", "", false
}
