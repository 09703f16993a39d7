package v1

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"

	"archivist/pkg/formats/premis"
)

// PREMISImport is a request to import the events of a PREMIS document into an item.
type PREMISImport struct {
	// The document, in XML: PREMIS 2.0 to 2.2, or 3.0; at most 1 MiB.
	Document string `json:"document" minLength:"1" maxLength:"1048576"`
	// The time zone of dates and times that state none, by its name. Without it, events with such are refused.
	Zone string `json:"zone,omitempty" maxLength:"60" example:"Europe/Copenhagen"`
	// Whether events that cannot be imported are left out. Otherwise nothing is imported if there is one.
	SkipRefused bool `json:"skipRefused,omitempty"`
	// Whether only the result is returned, and nothing is recorded.
	DryRun bool `json:"dryRun,omitempty"`
	// Why. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"Migration of the newspapers"`
}

// PREMISImported is the result of an import. Each event of the document is in one of the lists.
type PREMISImported struct {
	// The id of the item.
	Item string `json:"item" example:"item:B400022028241-RT1"`
	// Events that are recorded, the oldest first; with dryRun, those that would be.
	Imported []PREMISEvent `json:"imported"`
	// Events that the item had already, by their identifiers.
	Present []PREMISEvent `json:"present"`
	// Events and agents that cannot be imported. If there is one, the request is refused, unless skipRefused or dryRun.
	Refused []PREMISRefusal `json:"refused"`
}

// PREMISEvent is an event of a PREMIS document.
type PREMISEvent struct {
	// The type of its identifier in the document.
	IdentifierType string `json:"identifierType" example:"UUID"`
	// Its identifier in the document.
	Identifier string `json:"identifier" example:"6a1b8f0e-5b0c-4c59-8f0b-5a3f2d1c0001"`
	// The name of the event here.
	Event string `json:"event,omitempty" example:"Data_Received"`
}

// PREMISRefusal is an event or agent of a PREMIS document that cannot be imported.
type PREMISRefusal struct {
	// The type of its identifier in the document, if it has one.
	IdentifierType string `json:"identifierType,omitempty" example:"UUID"`
	// Its identifier in the document, if it has one.
	Identifier string `json:"identifier,omitempty" example:"6a1b8f0e-5b0c-4c59-8f0b-5a3f2d1c0002"`
	// Why it cannot be imported.
	Reason string `json:"reason" example:"the event in line 12 has the eventOutcome \"maybe\""`
}

// ImportPREMIS imports the events of a PREMIS document into an item. The same document again changes
// nothing.
func (c *Client) ImportPREMIS(ctx context.Context, item string,
	in PREMISImport) (PREMISImported, error) {
	return post[PREMISImported](ctx, c, "/v1/item/premis"+query("id", item), in)
}

// ItemPREMIS writes the history of an item as one PREMIS document.
func (c *Client) ItemPREMIS(ctx context.Context, item string, w io.Writer) error {
	return c.joined(ctx, "/v1/item/premis"+query("id", item), "&", w)
}

// HistoryPREMIS writes the permanent record of an object as one PREMIS document.
func (c *Client) HistoryPREMIS(ctx context.Context, ark string, w io.Writer) error {
	return c.joined(ctx, ObjectPath(ark)+"/history", "?", w)
}

// nextPage matches the header Link of a page in XML.
var nextPage = regexp.MustCompile(`^<\?(?:[^>]*&)?cursor=([^>&]*)[^>]*>; rel="next"$`)

// joined writes the pages of a list, which are PREMIS documents, as one. A cursor is added to the path
// after the separator.
func (c *Client) joined(ctx context.Context, path, separator string, w io.Writer) error {
	var pages [][]byte
	for at := path; at != ""; {
		resp, err := c.do(ctx, http.MethodGet, at, nil, []string{"Accept", "application/xml"})
		if err != nil {
			return err
		}

		var page bytes.Buffer
		_, err = page.ReadFrom(resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}

		pages = append(pages, page.Bytes())
		at = ""
		if next := nextPage.FindStringSubmatch(resp.Header.Get("Link")); next != nil {
			at = path + separator + "cursor=" + next[1]
		}
	}
	return premis.Join(w, pages...)
}
