// Package systemfile writes the system files of a version: what the archive adds to the
// producer's files, so that a stored version explains itself without the archive.
//
//	system/archivist-files.jsonl           the producer's files; see [aip.ListName]
//	system/mrt-ingest.txt                  how the version was ingested
//	system/mrt-mom.txt                     the object's identifiers (Merritt object model)
//	system/mrt-owner.txt                   its owner
//	system/mrt-membership.txt              its collection
//	system/mrt-erc.txt                     its description, as an ERC record in ANVL
//	system/mrt-dc.xml                      its description, as Dublin Core
//	system/premis.xml                      its provenance; see [provenance.Archive.Document]
//	system/mrt-manifest.checkm             the producer's files with their sha256
//	system/archivist-withdrawal.txt        why, by whom and when the object was withdrawn, if it is
//	system/archivist-legal-hold.txt        the same of its legal hold, if it is under one
//	system/archivist-retention.txt         the same of its retention, and until when
//	system/mrt-submission-manifest.checkm  the manifest that was submitted, if there was one
//
// The files follow from the job, its description and its entries alone: written again,
// they have the same bytes.
package systemfile

import (
	"io"
	"slices"
	"strings"

	"archivist/pkg/formats/anvl"
	"archivist/pkg/ingest"
	"archivist/pkg/objects/aip"
)

// Deletions is the file of an update that lists the files to delete, a name in each line. The version has it as a
// system file: it is no content. (Source: Merritt.)
const Deletions = "producer/mrt-delete.txt"

// File is one system file. Write writes its content.
type File struct {
	Path  string
	Write func(io.Writer) error
}

// Files are the system files of a version, except the list of files: the caller writes
// that first and reads the entries from it.
func (v Version) Files() []File {
	j := v.Job
	files := []File{
		{"system/mrt-ingest.txt", lines(ingestion(j))},
		{aip.ObjectName, lines(identifiers(j))},
		{aip.OwnerName, lines([]anvl.Element{{Name: "owner", Value: j.Collection}})},
		{aip.MembershipName, lines([]anvl.Element{{Name: "collection", Value: j.Collection}})},
		{aip.ERCName, v.writeERC},
		{aip.DCName, v.writeDC},
		{"system/premis.xml",
			func(w io.Writer) error { return v.Archive.Document(w, j, v.Number, v.Entries) }},
		{"system/mrt-manifest.checkm", v.writeManifest},
	}

	for _, f := range aip.PolicyFiles {
		if d := *f.Of(&v.Policies); d != nil {
			files = append(files, File{f.Name, lines(decision(f.Since, d))})
		}
	}

	if len(v.Deleted) > 0 {
		text := strings.Join(v.Deleted, "\n") + "\n"
		files = append(files, File{"system/mrt-delete.txt", func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		}})
	}

	if j.Payload.Type == ingest.TypeObjectManifest {
		files = append(files, File{"system/mrt-submission-manifest.checkm", v.writeSubmitted})
	}
	return files
}

// Counts reports whether a change of a file makes a new version: a change of a producer's
// file does, or of a system file that identifies or describes the object, or says what was
// decided about it. The other
// system files describe how this version was made.
func Counts(path string) bool {
	switch path {
	case aip.ObjectName, aip.OwnerName, aip.MembershipName, aip.ERCName, aip.DCName:
		return true
	}
	return strings.HasPrefix(path, "producer/") ||
		slices.ContainsFunc(aip.PolicyFiles, func(f aip.PolicyFile) bool { return f.Name == path })
}
