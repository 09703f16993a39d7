package stage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"path"
	"strings"

	"archivist/pkg/bucket"
	"archivist/pkg/checkm"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
)

// Entry is one line of a job's ledger: a file that is in the work bucket, with
// everything that was learned of it.
type Entry struct {
	ocfl.File
	URL       string `json:"url"` // redacted
	MediaType string `json:"mediaType"`
	Modified  string `json:"modified,omitempty"`
	Given     string `json:"given,omitempty"` // the depositor's algorithm, if there was a digest
	Warning   string `json:"warning,omitempty"`
}

// segmentFiles is how many files a segment of the ledger has. The ledger is in the
// manifest's order; nobody needs all of it at once.
const segmentFiles = 500

func segmentPrefix(job string) string     { return workPrefix(job) + "ledger/" }
func segmentKey(job string, n int) string { return fmt.Sprintf("%s%06d.json", segmentPrefix(job), n) }
func unfinishedKey(job string, n int) string {
	return fmt.Sprintf("%sunfinished/%06d.json", workPrefix(job), n)
}

// segments are the numbers of the segments that are finished.
func (s *Stages) segments(ctx context.Context, job string) (map[int]bool, error) {
	done := map[int]bool{}
	err := s.Work.List(ctx, segmentPrefix(job), func(o bucket.Listed) error {
		var n int
		if _, err := fmt.Sscanf(path.Base(o.Key), "%06d.json", &n); err == nil {
			done[n] = true
		}
		return nil
	})
	return done, err
}

// entries gives every file of the job's ledger.
func (s *Stages) entries(ctx context.Context, j *ingest.Job) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for n := range (j.Files + segmentFiles - 1) / segmentFiles {
			var segment []Entry
			if err := s.getJSON(ctx, segmentKey(j.ID, n), &segment); err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range segment {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// rows gives each the files that the job is to download, in order. manifest is the
// job's, if its payload is one.
func rows(ctx context.Context, j *ingest.Job, manifest ocfl.Text, each func(checkm.Row) error) error {
	if j.Payload.Type != ingest.TypeObjectManifest {
		return each(fileRow(j))
	}
	body, err := manifest(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	_, _, err = checkm.Read(body, checkm.Options{}, each)
	return err
}

func fileRow(j *ingest.Job) checkm.Row {
	size := int64(-1)
	if j.Payload.Size > 0 || j.Payload.Empty {
		size = j.Payload.Size
	}
	return checkm.Row{URL: j.URL, Algorithm: j.Payload.Algorithm, Digest: j.Payload.Digest, Size: size, Name: j.Payload.Filename}
}

// inSegments gives each the job's rows by segments.
func (s *Stages) inSegments(ctx context.Context, j *ingest.Job, each func(n int, rows []checkm.Row) error) error {
	n, segment := 0, make([]checkm.Row, 0, segmentFiles)
	err := rows(ctx, j, s.workText(manifestKey(j)), func(r checkm.Row) error {
		segment = append(segment, r)
		if len(segment) < segmentFiles {
			return nil
		}
		err := each(n, segment)
		n, segment = n+1, segment[:0]
		return err
	})
	if err == nil && len(segment) > 0 {
		err = each(n, segment)
	}
	return err
}

func (s *Stages) putJSON(ctx context.Context, key string, v any, c bucket.Condition) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("stage: %s: %w", key, err)
	}
	return s.Work.Put(ctx, key, data, c)
}

func (s *Stages) getJSON(ctx context.Context, key string, into any) error {
	data, _, err := s.Work.Read(ctx, key)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("stage: %s: %w", key, err)
	}
	return nil
}

// FilesName is the system file that lists a version's producer files in order of
// their paths: one JSON object a line, with everything that is known of the file.
const FilesName = "system/archivist-files.jsonl"

// entriesOf gives the files of a list as it is read.
func entriesOf(list io.Reader) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for lines := json.NewDecoder(list); ; {
			var e Entry
			err := lines.Decode(&e)
			if err == io.EOF {
				return
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Files reads lines of the list of a version's files from a byte on, at most n,
// and returns where the next begins; at the end there are fewer than n.
func (s *Stages) Files(ctx context.Context, stored *ocfl.Stored, version int, from int64, n int) (files []Entry, next int64, err error) {
	body, err := s.Root.Open(ctx, stored, version, FilesName, from)
	if err != nil {
		return nil, from, err
	}
	defer body.Close()
	lines := json.NewDecoder(body)
	for len(files) < n {
		var e Entry
		err := lines.Decode(&e)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, from, fault.New(fault.Invalid, "byte %d of the list of files does not begin a line: %w", from, err)
		}
		files = append(files, e)
	}
	return files, from + lines.InputOffset() + 1, nil
}

// Content is where a file of a stored version is in the bucket. A path that the
// version does not have is a NotFound. It is searched, in some small reads.
func (s *Stages) Content(ctx context.Context, stored *ocfl.Stored, version int, file string) (string, error) {
	if !strings.HasPrefix(file, "producer/") {
		return s.Root.Key(ctx, stored, version, file)
	}
	list, err := s.Root.Key(ctx, stored, version, FilesName)
	if err != nil {
		return "", err
	}
	info, err := s.Root.Bucket.Head(ctx, list)
	if err != nil {
		return "", err
	}
	at, found, err := s.Root.Bucket.Search(ctx, list, 0, info.Size, file, firstLine)
	if err != nil {
		return "", err
	}
	if !found {
		return "", fault.New(fault.NotFound, "%s v%d has no file %q", stored.ID, version, file)
	}
	files, _, err := s.Files(ctx, stored, version, at, 1)
	if err != nil {
		return "", err
	}
	return s.Root.Content(ctx, stored, files[0].Digests["sha512"])
}

// firstLine finds the first whole line of a list of files in a text.
func firstLine(text []byte, start bool) (at int, file string, ok bool) {
	if !start {
		if at = bytes.IndexByte(text, '\n') + 1; at == 0 {
			return 0, "", false
		}
	}
	line, _, whole := bytes.Cut(text[at:], []byte("\n"))
	var e Entry
	if !whole || json.Unmarshal(line, &e) != nil {
		return 0, "", false
	}
	return at, e.Path, true
}

// sum counts the producer's files of a stored version and their bytes.
func (s *Stages) sum(ctx context.Context, stored *ocfl.Stored, version int) (files int, bytes int64, err error) {
	body, err := s.Root.Open(ctx, stored, version, FilesName, 0)
	if err != nil {
		return 0, 0, err
	}
	defer body.Close()
	for lines := json.NewDecoder(body); ; files++ {
		var e struct {
			Size int64 `json:"size"`
		}
		err := lines.Decode(&e)
		if err == io.EOF {
			return files, bytes, nil
		}
		if err != nil {
			return 0, 0, fmt.Errorf("stage: %s of %s: %w", FilesName, stored.ID, err)
		}
		bytes += e.Size
	}
}
