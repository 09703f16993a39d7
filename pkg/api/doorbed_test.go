package api_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// form is a form as curl sends it: names and values in turn, and a file.
func form(t *testing.T, filename, content string, fields ...string) (media string, body []byte) {
	t.Helper()
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	part, err := w.CreateFormFile("file", filename)
	if err == nil {
		_, err = part.Write([]byte(content))
	}
	for i := 0; err == nil && i < len(fields); i += 2 {
		err = w.WriteField(fields[i], fields[i+1])
	}
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), out.Bytes()
}

// formOf is the form of an example, whose file is text.
func formOf(t *testing.T, example object) (media string, body []byte) {
	t.Helper()
	var fields []string
	for name, value := range example {
		if name != "file" {
			fields = append(fields, name, value.(string))
		}
	}
	return form(t, "letter.txt", example["file"].(string), fields...)
}

// arkOf is the ARK of the examples.
const arkOf = "ark:/99999/fk4tq65d6k"

// merrittAnswer is an answer in XML as Merritt's user interface reads it.
type merrittAnswer struct {
	XMLName     xml.Name
	BatchID     string   `xml:"http://uc3.cdlib.org/ontology/mrt/ingest/batch batchID"`
	Package     string   `xml:"http://uc3.cdlib.org/ontology/mrt/ingest/batch packageName"`
	User        string   `xml:"http://uc3.cdlib.org/ontology/mrt/ingest/batch userAgent"`
	At          string   `xml:"http://uc3.cdlib.org/ontology/mrt/ingest/batch submissionDate"`
	Status      string   `xml:"http://uc3.cdlib.org/ontology/mrt/ingest/batch batchStatus"`
	Message     string   `xml:"http://uc3.cdlib.org/ontology/mrt/ingest/batch batchStatusMessage"`
	Jobs        []string `xml:"http://uc3.cdlib.org/ontology/mrt/ingest/batch jobStates>jobState>jobID"`
	Error       string   `xml:"http://uc3.cdlib.org/ontology/mrt/core/exc error"`
	StatusName  string   `xml:"http://uc3.cdlib.org/ontology/mrt/core/exc statusName"`
	Description string   `xml:"http://uc3.cdlib.org/ontology/mrt/core/exc statusDescription"`
	HTTP        int      `xml:"http://uc3.cdlib.org/ontology/mrt/core/exc hTTPResponse"`
}

// ofMerritt reads an answer if it is one of Merritt's in XML.
func ofMerritt(text string) (out merrittAnswer, is bool) {
	is = strings.HasPrefix(text, xml.Header) && xml.Unmarshal([]byte(text), &out) == nil
	return out, is
}

// knock posts a form, and reads the answer in XML.
func knock(t *testing.T, c *v1.Client, path, filename, content string, fields ...string) (*http.Response,
	merrittAnswer) {
	t.Helper()
	media, body := form(t, filename, content, fields...)
	return send(t, c, path, media, body)
}

// send posts a body, and reads the answer in XML.
func send(t *testing.T, c *v1.Client, path, media string, body []byte) (*http.Response, merrittAnswer) {
	t.Helper()
	resp, text := ask(t, "POST", c.URL+path, string(body), "Content-Type", media)
	var out merrittAnswer
	err := xml.Unmarshal([]byte(text), &out)
	if err != nil || resp.Header.Get("Content-Type") != "text/xml; charset=utf-8" {
		t.Fatalf("%d %s %s: %v", resp.StatusCode, resp.Header.Get("Content-Type"), text, err)
	}
	return resp, out
}

// stored is a batch as it is stored, without what differs between two of the same submission.
func stored(t *testing.T, q *queue.Queue, id string) ingest.Batch {
	t.Helper()
	row, err := q.Batch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	b := row.Batch
	b.ID, b.Created, b.Work, b.Behind, b.Begins = "", 0, ingest.Work{}, false, "" // only the first begins a collection
	return b
}

// rowsOf are all rows of a table, as text.
func rowsOf(t testing.TB, q *queue.Queue) string {
	t.Helper()
	var all []string
	for cursor := ""; ; {
		rows, next, err := q.Table.Scan(t.Context(), "", 1000, cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			item, err := json.Marshal(row.Item)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(item))
		}
		cursor = next
		if cursor == "" {
			slices.Sort(all)
			return strings.Join(all, "\n")
		}
	}
}
