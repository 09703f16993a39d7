package systemfile

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"archivist/pkg/formats/anvl"
	"archivist/pkg/formats/erc"
	"archivist/pkg/formats/premis"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/description"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/inventory"
)

// lines writes elements as ANVL.
func lines(elements []anvl.Element) func(io.Writer) error {
	return func(w io.Writer) error { return anvl.Write(w, elements...) }
}

// ingestion is how a version was ingested, with the names of Merritt.
func ingestion(j *ingest.Job) []anvl.Element {
	all := []anvl.Element{
		{Name: "ingest", Value: "archivist"},
		{Name: "batch", Value: j.Batch},
		{Name: "job", Value: j.ID},
		{Name: "collection", Value: j.Collection},
		{Name: "submitter", Value: j.Submitter},
		{Name: "mode", Value: j.Mode},
		{Name: "payloadType", Value: j.Payload.Type},
		{Name: "payloadURL", Value: fetch.Redact(j.URL)},
		{Name: "submissionDate", Value: ingest.Timestamp(j.Created)},
		{Name: "processDate", Value: ingest.Timestamp(j.Stamp)},
	}
	if j.Uploader != "" {
		all = append(all, anvl.Element{Name: "uploadedBy", Value: j.Uploader})
	}
	return all
}

// identifiers are those of an object. Local ids that were withdrawn stay in its history.
func identifiers(j *ingest.Job) []anvl.Element {
	all := []anvl.Element{
		{Name: "primaryIdentifier", Value: j.Primary},
		{Name: "type", Value: "MRT-curatorial"},
		{Name: "role", Value: "MRT-content"},
		{Name: "localIdentifier", Value: strings.Join(j.LocalIDs, "; ")},
	}
	if len(j.Withdrawn) > 0 {
		all = append(all, anvl.Element{Name: "withdrawnLocalIdentifier", Value: strings.Join(j.Withdrawn, "; ")})
	}
	return all
}

// decision is what was decided about an object. since is the name of the element that says when.
func decision(since string, d *inventory.Decision) []anvl.Element {
	all := []anvl.Element{
		{Name: since, Value: d.At},
		{Name: "by", Value: d.By},
		{Name: "reason", Value: d.Reason},
	}
	if d.Until != "" {
		all = append(all, anvl.Element{Name: "until", Value: d.Until})
	}
	return all
}

// writeERC writes the kernel record (ERC), each value in a line of its own. Elements
// without one are "(:unas)", unassigned. The first line is the label of such a record.
func (v Version) writeERC(w io.Writer) error {
	d := v.Description
	var elements []anvl.Element
	for _, e := range []struct {
		name   string
		values []string
	}{{"who", d.Who}, {"what", d.What}, {"when", d.When}, {"where", v.where()}} {
		if len(e.values) == 0 {
			e.values = []string{"(:unas)"}
		}
		for _, value := range e.values {
			elements = append(elements, anvl.Element{Name: e.name, Value: value})
		}
	}

	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "erc:")
	if err := anvl.Write(b, elements...); err != nil {
		return err
	}
	return b.Flush()
}

// writeDC writes a simple Dublin Core record (oai_dc).
func (v Version) writeDC(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s<dc xmlns=%q xmlns:dc=%q>\n", xml.Header,
		"http://www.openarchives.org/OAI/2.0/oai_dc/", "http://purl.org/dc/elements/1.1/")
	put := func(name string, values []string) {
		for _, value := range values {
			fmt.Fprintf(b, "  <dc:%s>", name)
			_ = xml.EscapeText(b, []byte(value)) // b keeps the error
			fmt.Fprintf(b, "</dc:%s>\n", name)
		}
	}

	d := v.Description
	put("title", d.What)
	put("creator", d.Who)
	put("date", d.When)
	for _, name := range erc.Elements {
		put(name, d.More[name])
	}

	put("identifier", v.where())
	fmt.Fprintln(b, "</dc>")
	return b.Flush()
}

// Refused returns which value of a job or of its description would not be read from the
// system files as it was written, or "". It is asked before anything is reserved, so that nothing
// is stored that cannot be read again.
func Refused(j *ingest.Job, d description.Description) string {
	for _, field := range []struct {
		name   string
		values []string
	}{
		{"collection", []string{j.Collection}},
		{"submitter", []string{j.Submitter}},
		{"URL", []string{fetch.Redact(j.URL)}},
		{"name of who uploaded it", []string{j.Uploader}},
		{"local id", j.LocalIDs},
		{"local id", j.Withdrawn},
		{"creator (who)", d.Who},
		{"title (what)", d.What},
		{"date (when)", d.When},
		{"reason", reason(j)},
	} {
		for _, v := range field.values {
			why := anvl.Carries(v)
			if why == "" {
				why = premis.Carries(v)
			}
			if why != "" {
				return refusal(field.name, v, why)
			}
		}
	}

	for _, name := range erc.Elements {
		for _, v := range d.More[name] {
			if why := premis.Carries(v); why != "" {
				return refusal(name+" of the description", v, why)
			}
		}
	}
	return ""
}

// reason is that of a correction, which its PREMIS has.
func reason(j *ingest.Job) []string {
	if !j.Corrects() {
		return nil
	}
	return []string{j.Note}
}

// refusal names the value, at most a hundred characters of it.
func refusal(name, value, why string) string {
	return fmt.Sprintf("the %s %.100q %s; correct it and submit again", name, value, why)
}
