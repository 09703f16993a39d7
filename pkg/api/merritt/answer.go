package merritt

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"strings"
)

// The names of Merritt's vocabularies ("XMLManifestNS" of CDLUC3/mrt-core2).
const (
	ofBatches  = "http://uc3.cdlib.org/ontology/mrt/ingest/batch"
	ofRefusals = "http://uc3.cdlib.org/ontology/mrt/core/exc"
)

// State is the answer to a submission that is accepted. Times are ISO 8601. In JSON it is what Merritt makes of its
// XML: an object with the name of the element.
type State struct {
	XMLName xml.Name `xml:"bat:batchState" json:"-"`
	Space   string   `xml:"xmlns:bat,attr" json:"xmlns:bat"`
	Batch   string   `xml:"bat:batchID" json:"bat:batchID"`
	Package string   `xml:"bat:packageName" json:"bat:packageName"`
	User    string   `xml:"bat:userAgent,omitempty" json:"bat:userAgent,omitempty"`
	At      string   `xml:"bat:submissionDate" json:"bat:submissionDate"`
	Status  string   `xml:"bat:batchStatus" json:"bat:batchStatus"` // QUEUED, COMPLETED, FAILED or DELETED
	Message string   `xml:"bat:batchStatusMessage,omitempty" json:"bat:batchStatusMessage,omitempty"`
	Jobs    Jobs     `xml:"bat:jobStates" json:"bat:jobStates"`
}

// Jobs has the job of a batch of one object. The jobs of a list are not known when it is accepted: nil.
type Jobs struct {
	Job *Job `xml:"bat:jobState" json:"bat:jobState,omitempty"`
}

// Job is the job of an object. Absent fields were not given.
type Job struct {
	ID      string `xml:"bat:jobID" json:"bat:jobID"`
	Package string `xml:"bat:packageName" json:"bat:packageName"`
	Primary string `xml:"bat:primaryID,omitempty" json:"bat:primaryID,omitempty"`
	Local   string `xml:"bat:localID,omitempty" json:"bat:localID,omitempty"` // separated by semicolons
	Creator string `xml:"bat:objectCreator,omitempty" json:"bat:objectCreator,omitempty"`
	Title   string `xml:"bat:objectTitle,omitempty" json:"bat:objectTitle,omitempty"`
	Date    string `xml:"bat:objectDate,omitempty" json:"bat:objectDate,omitempty"`
	At      string `xml:"bat:submissionDate" json:"bat:submissionDate"`
}

// refused is a Refusal as it is sent.
type refused struct {
	XMLName     xml.Name `json:"-"`
	Space       string   `xml:"xmlns:exc,attr" json:"xmlns:exc"`
	Status      string   `xml:"exc:status" json:"exc:status"`
	Name        string   `xml:"exc:statusName" json:"exc:statusName"`
	Says        string   `xml:"exc:statusDescription" json:"exc:statusDescription"`
	Description string   `xml:"exc:description" json:"exc:description"`
	Error       string   `xml:"exc:error" json:"exc:error"`
	HTTP        int      `xml:"exc:hTTPResponse" json:"exc:hTTPResponse"`
}

// Refusal is the answer to a submission that is not accepted. Status is the HTTP status that the API has for it, and
// Detail what is wrong and what to do.
type Refusal struct {
	Status int
	Detail string
}

// causes are Merritt's names of what is wrong, by the HTTP status of the API; 422 is not among its own.
var causes = map[int]struct{ name, says string }{
	http.StatusBadRequest: {"REQUEST_INVALID",
		"The request has a field that is missing or invalid"},
	http.StatusUnauthorized: {"USER_NOT_AUTHENTICATED", "The user is not authenticated"},
	http.StatusForbidden:    {"USER_NOT_AUTHORIZED", "The user is not authorized"},
	http.StatusNotFound: {"REQUESTED_ITEM_NOT_FOUND",
		"The request names something that is not there"},
	http.StatusMethodNotAllowed: {"REQUEST_ELEMENT_UNSUPPORTED",
		"The request has a part that is not supported"},
	http.StatusConflict: {"REQUEST_ITEM_EXISTS",
		"The request does not fit what is there"},
	http.StatusRequestEntityTooLarge: {"REQUEST_INVALID", "The submission is too large"},
	http.StatusUnsupportedMediaType: {"REQUEST_ELEMENT_UNSUPPORTED",
		"The request has a part that is not supported"},
	http.StatusServiceUnavailable: {"EXTERNAL_SERVICE_UNAVAILABLE",
		"A service is not available"},
	http.StatusInternalServerError: {"GENERAL_EXCEPTION", "An unexpected error"},
}

// HTTP is the HTTP status with which a refusal is sent: Merritt says 400 of what is wrong in a form.
func (r Refusal) HTTP() int {
	if r.Status == http.StatusUnprocessableEntity {
		return http.StatusBadRequest
	}
	return r.Status
}

// cause is Merritt's name of a refusal.
func (r Refusal) cause() (name, says string) {
	cause, known := causes[r.HTTP()]
	if !known {
		cause = causes[http.StatusInternalServerError]
	}
	return cause.name, cause.says
}

// Name is the name of the element of a refusal.
func (r Refusal) Name() string {
	name, _ := r.cause()
	return "exc:tException." + name
}

// element is what is sent of a State or a Refusal, with its name.
func element(what any) (name string, is any) {
	switch x := what.(type) {
	case State:
		x.Space = ofBatches
		return "bat:batchState", x
	case Refusal:
		name, says := x.cause()
		return x.Name(), refused{xml.Name{Local: x.Name()}, ofRefusals, name, name, says, says,
			Named(x.Detail),
			x.HTTP()}
	}
	return "", what
}

// Encode is a State or a Refusal in a format. Neither can fail to be encoded.
func (f Format) Encode(what any) []byte {
	name, is := element(what)
	if f == JSON {
		data, _ := json.Marshal(map[string]any{name: is})
		return append(data, '\n')
	}
	data, _ := xml.MarshalIndent(is, "", "  ")
	return append(append([]byte(xml.Header), data...), '\n')
}

// Example is a State or a Refusal as a value of JSON.
func Example(what any) map[string]any {
	name, is := element(what)
	return map[string]any{name: is}
}

// ofFields are the names of the fields of the API in the form of Merritt.
var ofFields = strings.NewReplacer("payload.digest", "digestValue", "payload.size", "size",
	"payload.filename",
	"filename", "payload.type", "type", "payload.url", "file", "payload.upload", "file",
	"identifiers.local",
	"localIdentifier", "identifiers.primary", "primaryIdentifier", "metadata.who", "creator",
	"metadata.what", "title",
	"metadata.when", "date")

// Named is the text of a refusal with the names of the form's fields, in place of those of the API.
func Named(text string) string {
	if rest, is := strings.CutPrefix(text, "collection:"); is {
		text = "profile:" + rest
	}
	return ofFields.Replace(text)
}
