package v1

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"archivist/pkg/kernel/fault"
)

// Formats of offsets besides JSON.
const (
	OffsetsCSV      = "csv"
	OffsetsWebVTT   = "webvtt"   // a track of captions ("WebVTT: The Web Video Text Tracks Format"), of one episode
	OffsetsAudacity = "audacity" // a label track (Audacity Manual, "Importing and Exporting Labels"), of one episode
)

// OffsetsMedia are the media types of the formats.
var OffsetsMedia = map[string]string{
	OffsetsCSV:      "text/csv; charset=utf-8",
	OffsetsWebVTT:   "text/vtt; charset=utf-8",
	OffsetsAudacity: "text/plain; charset=utf-8",
}

// WriteOffsets writes offsets in a format. Of the first page head is true: CSV has names of columns, WebVTT a
// header. WebVTT and Audacity labels are sorted by time, so all of an episode must be given at once.
func WriteOffsets(w io.Writer, format string, head bool, all []ResearchOffset) error {
	switch format {
	case OffsetsCSV:
		return writeCSV(w, head, all)
	case OffsetsWebVTT:
		return writeWebVTT(w, byTime(all))
	case OffsetsAudacity:
		return writeAudacity(w, byTime(all))
	}
	return fault.New(fault.Invalid, "format: found %q; expected csv, webvtt or audacity", format)
}

// byTime sorts offsets by their beginning, then by the clip.
func byTime(all []ResearchOffset) []ResearchOffset {
	return slices.SortedStableFunc(slices.Values(all), func(a, b ResearchOffset) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Clip, b.Clip))
	})
}

// name is what the clip is called: a line.
func (o ResearchOffset) name() string {
	return strings.Join(strings.Fields(cmp.Or(o.Title, o.Clip)), " ")
}

// seconds are nanoseconds as exact seconds.
func seconds(ns int64) string { return fmt.Sprintf("%d.%09d", ns/1e9, ns%1e9) }

// formulas begin cells that spreadsheets would compute.
const formulas = "=+-@\t\r"

// cell is text that no spreadsheet takes for a formula: such text gets an apostrophe in front.
func cell(text string) string {
	if text != "" && strings.ContainsRune(formulas, rune(text[0])) {
		return "'" + text
	}
	return text
}

func writeCSV(w io.Writer, head bool, all []ResearchOffset) error {
	out := csv.NewWriter(w)
	if head {
		_ = out.Write([]string{"episode", "clip", "title", "start_seconds", "end_seconds", "score",
			"stored"})
	}

	for _, o := range all {
		_ = out.Write([]string{o.Episode, o.Clip, cell(o.Title), seconds(o.Offset),
			seconds(o.Offset + o.Length),
			strconv.FormatFloat(o.Score, 'f', -1, 64), o.At})
	}

	out.Flush()
	return out.Error()
}

// escaped is text of a cue: "&", "<" and ">" have a meaning there.
var escaped = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// vttTime is a time of WebVTT: its unit is the millisecond.
func vttTime(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	return fmt.Sprintf("%02d:%02d:%02d.%03d", int64(d.Hours()), int64(d.Minutes())%60,
		int64(d.Seconds())%60, ms%1000)
}

func writeWebVTT(w io.Writer, all []ResearchOffset) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, "WEBVTT\n")
	for _, o := range all {
		from := o.Offset / 1e6
		to := max(from+1, (o.Offset+o.Length)/1e6) // a cue ends after it begins
		fmt.Fprintf(out, "\n%s --> %s\n%s\n", vttTime(from), vttTime(to), escaped.Replace(o.name()))
	}
	return out.Flush()
}

func writeAudacity(w io.Writer, all []ResearchOffset) error {
	out := bufio.NewWriter(w)
	for _, o := range all {
		fmt.Fprintf(out, "%s\t%s\t%s\n", seconds(o.Offset), seconds(o.Offset+o.Length), o.name())
	}
	return out.Flush()
}
