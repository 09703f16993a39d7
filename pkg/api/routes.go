package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// output is the response of a handler: the body as JSON. huma takes headers and the body from such
// structs.
type output[T any] struct{ Body T }

// register registers a route whose response is JSON. f returns errors of a kind; problem makes
// responses of them. What f returns beside an error is dropped.
func register[I, O any](a *API, h huma.API, op huma.Operation,
	f func(context.Context, *I) (O, error)) {
	huma.Register(h, op, func(ctx context.Context, in *I) (*output[O], error) {
		out, err := f(ctx, in)
		if err != nil {
			return nil, a.problem(err)
		}
		return &output[O]{out}, nil
	})
}

// get registers a GET route under its id in operations.
func get[I, O any](a *API, h huma.API, path, id, summary string,
	f func(context.Context, *I) (O, error)) {
	register(a, h, operationAt(http.MethodGet, path, id, summary), f)
}

// post registers a POST route likewise, and put a PUT route.
func post[I, O any](a *API, h huma.API, path, id, summary string,
	f func(context.Context, *I) (O, error)) {
	register(a, h, operationAt(http.MethodPost, path, id, summary), f)
}

func put[I, O any](a *API, h huma.API, path, id, summary string,
	f func(context.Context, *I) (O, error)) {
	register(a, h, operationAt(http.MethodPut, path, id, summary), f)
}

// operationAt is a route as the framework takes it.
func operationAt(method, path, id, summary string) huma.Operation {
	return huma.Operation{Method: method, Path: path, OperationID: id, Summary: summary}
}

// found is a redirect to a URL of the storage.
type found struct {
	Status   int
	Location string `header:"Location" doc:"The URL of the content." example:"https://s3.example.org/key?signature"`
}

// redirect registers a GET route that redirects to a URL. f returns the URL: a signed one, valid for
// contentFor. So contents of any size do not pass the function, whose response has at most 6 MB.
func redirect[I any](a *API, h huma.API, path, id, summary string,
	f func(context.Context, *I) (string, error), also ...func(huma.Context, func(huma.Context))) {
	op := operationAt(http.MethodGet, path, id, summary)
	op.Middlewares = also
	op.DefaultStatus = http.StatusFound
	huma.Register(h, op, func(ctx context.Context, in *I) (*found, error) {
		url, err := f(ctx, in)
		if err != nil {
			return nil, a.problem(err)
		}
		return &found{http.StatusFound, url}, nil
	})
}

// contentFor is how long the URL of a redirect to content is valid. It has to last until a client that
// follows the redirect has begun to read.
const contentFor = 15 * time.Minute
