package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// Console serves the pages. The fields are set before and not changed; the methods can be called concurrently.
type Console struct {
	API http.Handler      // the routes of the API
	Web http.RoundTripper // to the issuer of tokens
	// Client is the client of the issuer as which people sign in; "" = that of the command line.
	Client string
	// Local: browsers reach it by http, on this machine. Otherwise cookies need https.
	Local bool
	// Uploads is the origin of the storage to which files are sent; nil or "" = it is that of the console.
	Uploads func(context.Context) string
	Now     func() time.Time
	Log     *slog.Logger

	schemas schemas // of the API's values, read once
}

// errAnswered: the page has answered by itself.
var errAnswered = errors.New("it is answered")
