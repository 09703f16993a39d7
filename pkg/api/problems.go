package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"

	"github.com/aws/smithy-go"
	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
)

// problemType is a kind of error response that a client can distinguish by its type. Several types can
// have one status.
type problemType struct {
	name    string // the last part of its URI
	status  int
	title   string
	advice  string // what a client should do
	example string // of a detail
}

// problemURI is the prefix of the URIs of the types. They are names, not addresses, and
// the same in every deployment.
const problemURI = "urn:archivist:problem:"

// URI is the value of "type" in an answer.
func (p problemType) URI() string { return problemURI + p.name }

// The types of problems. They are part of the interface: types may be added but not
// renamed. API Gateway itself sends those marked as the gateway's: such a request does not
// reach the function.
var (
	malformedRequest = problemType{"malformed-request", 400, "Malformed request",
		"Send a body that is valid JSON, with each name once.", "unexpected EOF"}
	unauthenticated = problemType{"unauthenticated", 401, "Not authenticated",
		"Send a token that is valid in the header Authorization: Bearer TOKEN. Get a new one if it has expired.",
		"the token has expired; get a new one"}
	notAuthorized = problemType{"not-authorized", 403, "Not authorized", // the gateway's
		"Something before the API refuses the call: ask who runs the deployment.", "Forbidden"}
	forbidden = problemType{"forbidden", 403, "Forbidden",
		"Ask someone with the role that detail names; about a withdrawn object, the archive.",
		"delete needs the role administrator; you have the role operator"}
	notFound = problemType{"not-found", 404, "Not found",
		"Check the id. An old submission may have been deleted.",
		`there is no job "01M7ZBMEYHBB62YP6RY21T1GQ6-00002"`}
	unknownRoute = problemType{"unknown-route", 404, "Unknown route",
		"Check the path: /openapi.json lists all routes.", noRoute}
	methodNotAllowed = problemType{"method-not-allowed", 405, "Method not allowed",
		"Use a method that is named in the header Allow.",
		"the route has no method DELETE; it has GET, HEAD, POST"}
	conflict = problemType{"conflict", 409, "Conflict",
		"The action does not fit the current state. Read the state and decide again.",
		"job 01M7ZBMEYHBB62YP6RY21T1GQ6-00001 is Completed; requeue needs Failed; a job that is Completed " +
			"cannot become anything else"}
	unconfirmed = problemType{"unconfirmed", 409, "Confirmation needed",
		"Read detail. To do it nevertheless, repeat the request with confirm.",
		"version 2 of ark:/99999/fk4x is by job 01M7ZBMEYHBB62YP6RY21T1GQ7-00001, which was submitted later" +
			" than job 01M7ZBMEYHBB62YP6RY21T1GQ6-00001: this job would replace version 2 as the newest; to do it " +
			"nevertheless, repeat the request with confirm"}
	changed = problemType{"changed", 409, "Changed by another request",
		"Read the resource again, then repeat the request.",
		"another request changed it at the same time"}
	tooLarge = problemType{"too-large", 413, "Request too large",
		"Send at most 1 MiB. Files are given by URL, not in the request.",
		"request body is too large limit=1048576 bytes"}
	unsupportedMedia = problemType{"unsupported-media-type", 415, "Unsupported media type",
		"Send the body as application/json.", "unknown content type: text/plain"}
	invalidRequest = problemType{"invalid-request", 422, "Invalid request",
		"Correct the fields that are named in detail and errors.",
		`state: found "done"; expected one of Pending, Held, Completed, Failed`}
	held = problemType{"held", 423, "Held",
		"It is on hold. Release the hold that detail names, or wait until it ends.",
		"job 01M7ZBMEYHBB62YP6RY21T1GQ6-00001 cannot be released: collection maps is on hold since " +
			"2026-11-22T09:30:00Z by an operator: rights are unclear. Release collection maps first"}
	tooManyRequests = problemType{"too-many-requests", 429, "Too many requests", // the gateway's
		"Wait some seconds, then send the request again.", "Too Many Requests"}
	internalError = problemType{"internal-error", 500, "Internal error",
		"Report the time of the request to the operator: the log has the cause.", defect}
	unavailable = problemType{"unavailable", 503, "Unavailable",
		"Send the same request again in a minute.", notNow}
	gatewayTimeout = problemType{"gateway-timeout", 504, "Gateway timeout", // the gateway's
		"Send the same request again. Submissions and actions need an Idempotency-Key for that.",
		"Endpoint request timed out"}
)

// The details for a defect, for a file that is missing, for a service that does not respond, for an unknown path, for a
// call without a token, for one with a key of the API, and of the gateway, which does not tell these apart.
const (
	noToken = "the call does not say who makes it; send a token in the header " + header
	noKeys  = "keys of the API (x-api-key) have ended; send a token in the header " + header +
		". Programs get one by archivist token create"
	badToken = "the call has no token that is accepted: it is missing, has expired, was revoked, " +
		"or is of another deployment. Send one in the header " + header +
		"; keys of the API (x-api-key) have ended"
	header = "Authorization: Bearer TOKEN"

	lost    = "a stored file that this needs is missing; the operator finds its name in the log"
	defect  = "something went wrong here; the operator finds the cause in the log"
	notNow  = "the archive cannot answer right now; try again in a minute"
	noRoute = "there is no route at this path; /openapi.json lists all"
)

// problemTypes are all types, ordered by status.
var problemTypes = []problemType{malformedRequest, unauthenticated, notAuthorized, forbidden,
	notFound, unknownRoute,
	methodNotAllowed, conflict, unconfirmed, changed, tooLarge, unsupportedMedia, invalidRequest,
	held, tooManyRequests,
	internalError, unavailable, gatewayTimeout}

// ofKind maps each kind of error to its problem type.
var ofKind = map[fault.Kind]problemType{
	fault.Invalid: invalidRequest, fault.NotFound: notFound, fault.Conflict: conflict,
	fault.Held: held, fault.Stale: changed, fault.Unavailable: unavailable,
	fault.Denied: forbidden,
}

// ofStatus maps a status of the framework to a problem type. It is the first of that status; a status
// that no type has becomes the general one of its class, and the response keeps the status.
func ofStatus(status int) problemType {
	for _, p := range problemTypes {
		if p.status == status {
			return p
		}
	}
	if status < 500 {
		return malformedRequest
	}
	return internalError
}

// refusal is a problem in the form that the framework sends.
type refusal struct{ v1.Problem }

// newRefusal makes the problem document of a type. detail is for the person who can act.
func newRefusal(p problemType, detail string) *refusal {
	return &refusal{v1.Problem{Type: p.URI(), Title: p.title, Status: p.status, Detail: detail}}
}

// Error returns the detail.
func (r *refusal) Error() string { return r.Detail }

// GetStatus returns the HTTP status.
func (r *refusal) GetStatus() int { return r.Status }

// ContentType returns the media type of RFC 9457, whatever the client accepts.
func (*refusal) ContentType(string) string { return problemMedia }

// Schema returns the schema of the wire type.
func (*refusal) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[v1.Problem](), true, "Problem")
}

const problemMedia = "application/problem+json"

// The framework creates its own errors, e.g. of validation, with this function.
func init() {
	huma.NewError = func(status int, detail string, errs ...error) huma.StatusError {
		r := newRefusal(ofStatus(status), detail)
		for _, err := range errs {
			var d huma.ErrorDetailer
			switch {
			case errors.As(err, &d):
				r.Errors = append(r.Errors, v1.FieldError{Message: d.ErrorDetail().Message,
					Location: d.ErrorDetail().Location})
			case err != nil:
				r.Errors = append(r.Errors, v1.FieldError{Message: err.Error()})
			}
		}

		if status != r.Status {
			r.Status, r.Title = status, http.StatusText(status)
		}
		return r
	}
}

// problem turns an error into a response. An error without a kind is a defect: its text is logged, and
// not sent to the client. It is always a *refusal. An Unavailable is not shown either, because its text
// names services. An unconfirmed action has a type of its own, and is looked for before the kinds.
func (a *API) problem(err error) error {
	if fault.Is(err, fault.Unavailable) {
		a.Log.Warn("a request could not be answered", "error", err)
		return newRefusal(unavailable, notNow)
	}

	if errors.Is(err, access.ErrUnauthenticated) {
		return newRefusal(unauthenticated, err.Error())
	}

	if errors.Is(err, ingest.ErrUnconfirmed) {
		return newRefusal(unconfirmed, err.Error())
	}

	// What a route looks for is a row. A file of the storage that is missing besides is not what was asked for.
	if missing := new(smithy.OperationError); fault.Is(err, fault.NotFound) && errors.As(err, &missing) {
		a.Log.Error("a stored file is missing", "error", err)
		return newRefusal(notFound, lost)
	}

	var e *fault.Error
	if errors.As(err, &e) {
		return newRefusal(ofKind[e.Kind], e.Msg)
	}

	a.Log.Error("a request failed because of a defect", "error", err)
	return newRefusal(internalError, defect)
}

// write sends the problem without the framework. It is for handlers outside of huma, and for its
// middlewares; bounded does not see what is written.
func (r *refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", problemMedia)
	w.WriteHeader(r.Status)
	_ = json.NewEncoder(w).Encode(r.Problem) // the client has disconnected
}

// Gateway has the problems that API Gateway sends itself when a request does not reach the
// function, by their names there ("Gateway response types for API Gateway"). One without a
// detail has that of the gateway. The first three are of the authorizer: it refuses a token, it
// fails, it cannot be called. A method that no path has is said to need a signature.
var Gateway = map[string]v1.Problem{
	"UNAUTHORIZED":                   newRefusal(unauthenticated, badToken).Problem,
	"AUTHORIZER_FAILURE":             newRefusal(unavailable, notNow).Problem,
	"AUTHORIZER_CONFIGURATION_ERROR": newRefusal(unavailable, notNow).Problem,
	"DEFAULT_4XX":                    newRefusal(malformedRequest, "").Problem,
	"DEFAULT_5XX":                    newRefusal(internalError, "").Problem,
	"ACCESS_DENIED":                  newRefusal(notAuthorized, "").Problem,
	"MISSING_AUTHENTICATION_TOKEN":   newRefusal(unknownRoute, noRoute).Problem,
	"RESOURCE_NOT_FOUND":             newRefusal(unknownRoute, "").Problem,
	"REQUEST_TOO_LARGE":              newRefusal(tooLarge, "").Problem,
	"THROTTLED":                      newRefusal(tooManyRequests, "").Problem,
	"INTEGRATION_FAILURE":            newRefusal(gatewayTimeout, "").Problem,
	"INTEGRATION_TIMEOUT":            newRefusal(gatewayTimeout, "").Problem,
}
