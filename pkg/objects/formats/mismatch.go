package formats

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// signed are extensions of names whose formats all have signatures in PRONOM: images, sound, video, and what offices
// write. A file of such a name without any signature is damaged, or something else.
var signed = []string{".tif", ".tiff", ".jpg", ".jpeg", ".png", ".gif", ".jp2", ".pdf", ".wav", ".mp3", ".flac", ".mp4",
	".mov", ".avi", ".mkv", ".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".epub", ".zip"}

// carriers are media types of formats in which many others are written, which PRONOM may not know: then another
// extension says nothing.
var carriers = []string{"", "application/xml", "application/json", "application/zip", "application/gzip"}

// Parts of the library's warnings.
const (
	otherExtension = "extension mismatch"
	textOnly       = "match on text only"
	noMatch        = "no match"
	onlyByName     = "possibilities based on extension"
)

// Mismatch says that the content of a file is not of the format that its name announces, "" if it is, or if that
// cannot be told. name is a path; matches are all that Identify has found.
func Mismatch(name string, matches []Match) string {
	ext := strings.ToLower(path.Ext(name))
	if ext == "" || len(matches) == 0 || slices.ContainsFunc(matches, func(m Match) bool { return m.fits(ext) }) {
		return ""
	}

	m := matches[0]
	if m.ID == Unknown {
		return fmt.Sprintf("its content has no signature of a known format, although all files whose name ends in %q "+
			"have one", ext)
	}
	return fmt.Sprintf("its content is %s (%s), although its name ends in %q",
		strings.TrimSpace(m.Name+" "+m.Version), m.ID, ext)
}

// fits reports whether a match does not speak against the extension of a name.
func (m Match) fits(ext string) bool {
	announced := slices.Contains(signed, ext)
	carries := slices.Contains(carriers, m.MediaType) || strings.HasPrefix(m.MediaType, "text/")
	other, partly := m.doubts()
	switch {
	case m.ID == Unknown:
		return !announced || partly
	case other && partly: // what carries others may carry one
		return !announced || carries
	case other:
		return !announced && carries
	}
	return true
}

// doubts tells from the warning whether the extension is that of other formats, and whether the content was examined
// in part only.
func (m Match) doubts() (other, partly bool) {
	for part := range strings.SplitSeq(m.Warning, "; ") {
		switch {
		case part == otherExtension:
			other = true
		case part != textOnly && part != noMatch && !strings.HasPrefix(part, onlyByName):
			partly = part != ""
		}
	}
	return other, partly
}
