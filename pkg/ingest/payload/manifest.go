package payload

import (
	"bytes"
	"fmt"
	"strings"

	"archivist/pkg/formats/ark"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fetch"
)

// CheckSource checks that the collection takes content of a row's URL. It makes a checkm.Options.Check. refused returns
// why a URL is refused, or ""; nil: the collection is not known, and every URL is accepted.
func CheckSource(refused func(url string) string) func(checkm.Row, func(column, why string)) {
	return func(r checkm.Row, wrong func(column, why string)) {
		if refused == nil {
			return
		}
		if why := refused(r.URL); why != "" {
			wrong("fileUrl", why)
		}
	}
}

// CheckRow checks that every later step can represent a row of a batch manifest, and that the collection takes content
// of its URL. It makes a checkm.Options.Check; see CheckSource.
func CheckRow(refused func(url string) string) func(checkm.Row, func(column, why string)) {
	source := CheckSource(refused)
	return func(r checkm.Row, wrong func(column, why string)) {
		source(r, wrong)
		checkValues(r, wrong)
	}
}

func checkValues(r checkm.Row, wrong func(column, why string)) {
	if _, err := ingest.CleanLocalIDs(r.Local); err != nil {
		wrong("localIdentifier", err.Error())
	}

	if _, err := ark.Parse(r.Primary); r.Primary != "" && err != nil {
		wrong("primaryIdentifier", err.Error())
	}

	for _, cell := range []struct{ column, text string }{{"creator", r.Creator}, {"title", r.Title},
		{"date", r.Date}} {
		if err := ingest.CheckText("the "+cell.column, cell.text, ingest.MaxMetadata); err != nil {
			wrong(cell.column, err.Error())
		}
	}
}

// ReadList reads a manifest of objects that a batch brings: its rows, and its warnings. refused is why it cannot be the
// payload of the batch, or "".
func ReadList(data []byte, b *ingest.Batch, want checkm.Kind,
	o checkm.Options) (rows []checkm.Row, warnings []string, refused string) {
	m, rows, problems, err := checkm.ReadAll(bytes.NewReader(data), o)
	if why := Rejected(m, problems, err, want); why != "" {
		return nil, nil, why
	}
	if len(rows) > ingest.MaxJobs {
		return nil, nil, fmt.Sprintf("the manifest lists %d objects; the limit is %d. Split it into "+
			"several submissions", len(rows), ingest.MaxJobs)
	}
	if _, why := Unnamed(rows, b.Mode); why != "" {
		return nil, nil, why
	}
	return rows, Warnings(problems), ""
}

// Unnamed returns the line of the first row that names no object although the submission is an update, and what to do,
// or "".
func Unnamed(rows []checkm.Row, mode string) (line int, why string) {
	for _, r := range rows {
		if mode == ingest.ModeUpdate && r.Primary == "" && len(r.Local) == 0 {
			return r.Line, fmt.Sprintf("line %d of the manifest has no primaryIdentifier and no localIdentifier, "+
				"but an update needs one of them. Correct it, then submit it again", r.Line)
		}
	}
	return 0, ""
}

// Rejected returns why a manifest that was read is rejected, or "".
func Rejected(m checkm.Manifest, problems []checkm.Problem, err error, want checkm.Kind) string {
	if err != nil {
		return "the manifest is corrupt: " + err.Error()
	}

	bad := checkm.Rejected(problems)
	if len(bad) == 0 && m.Kind != want {
		return fmt.Sprintf("the manifest's profile is that of the kind %q; this payload type expects %q. "+
			"Submit it again with the matching type", m.Kind, want)
	}

	lines := make([]string, len(bad))
	for i, p := range bad {
		lines[i] = p.String()
	}

	if len(bad) == 0 {
		return ""
	}
	return "the manifest is rejected: " + strings.Join(lines, "; ")
}

// Warnings are those of a manifest that was read.
func Warnings(problems []checkm.Problem) []string {
	var all ingest.Warnings
	for _, p := range problems {
		if p.Severity == checkm.Warning {
			all.Add("manifest: " + p.String())
		}
	}
	return all.List("archivist batch check-manifest lists them")
}

// WrongDigest returns how the received content differs from the depositor's digest, or "".
func WrongDigest(what string, came *fetch.Digester, p ingest.Payload) string {
	if p.Digest == "" {
		return ""
	}
	if got := came.Sums()[p.Algorithm]; got != p.Digest {
		return fmt.Sprintf("%s: the depositor's %s is %s, but %s was computed over %d bytes received", what,
			p.Algorithm, p.Digest, got, came.Size)
	}
	return ""
}
