package buckettest

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// multipart answers the operations of an upload. Begin gives an id that was never used
// before, also after a restart; all others need one that is open, or are refused as
// NoSuchUpload.
func (t *Twin) multipart(op, name string, q url.Values, w http.ResponseWriter,
	r *http.Request) error {
	id := q.Get("uploadId")
	t.mu.Lock()
	parts, known := t.uploads[id]
	t.mu.Unlock()
	if op != "Begin" && !known {
		return &fail{404, "NoSuchUpload"}
	}

	switch op {
	case "Begin":
		t.mu.Lock()
		defer t.mu.Unlock()
		id = fmt.Sprintf(uploadID, t.n+1)
		if err := t.write(change{Begin: id, Name: name}); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w,
			"<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>", id)
		return err
	case "ListParts":
		return t.listParts(parts, w)
	case "UploadPart", "UploadPartCopy":
		return t.part(op, id, q, w, r)
	case "Complete":
		return t.complete(name, id, parts, w, r)
	case "Abort":
		t.mu.Lock()
		defer t.mu.Unlock()
		if err := t.write(change{End: id}); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return fmt.Errorf("buckettest: %s is not known", op)
}

// part stores a part, from the request or as a range of another object. A part with a number
// that is there already replaces it, as on S3.
func (t *Twin) part(op, id string, q url.Values, w http.ResponseWriter, r *http.Request) error {
	in := io.Reader(r.Body)
	if op == "UploadPartCopy" {
		o, err := t.source(r)
		if err != nil {
			return err
		}
		body, err := t.open(o)
		if err != nil {
			return err
		}
		defer body.Close()
		var from, last int64
		if _, err := fmt.Sscanf(r.Header.Get("X-Amz-Copy-Source-Range"), "bytes=%d-%d", &from,
			&last); err != nil {
			return err
		}
		if _, err := body.Seek(from, io.SeekStart); err != nil {
			return err
		}
		in = io.LimitReader(body, last-from+1)
	}

	o, err := t.keep(in)
	if err != nil {
		return err
	}
	o.SHA = ""

	n, err := strconv.Atoi(q.Get("partNumber"))
	if err != nil {
		return err
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.write(change{Part: n, Of: id, Object: &o}); err != nil {
		return err
	}

	w.Header().Set("ETag", o.ETag)
	w.Header().Set("X-Amz-Checksum-Crc64nvme", o.CRC)
	if op == "UploadPartCopy" {
		_, err = fmt.Fprintf(w,
			"<CopyPartResult><ETag>%s</ETag><ChecksumCRC64NVME>%s</ChecksumCRC64NVME></CopyPartResult>", o.ETag, o.CRC)
	}
	return err
}

// complete makes one object of the parts, which must be numbered from 1 without a gap; the list
// of parts in the request is not looked at. The ETag ends in the number of parts, as S3's does.
// The object is set, under the request's condition, before the upload ends: a process that dies
// in between leaves both. Then the files of the parts are removed.
func (t *Twin) complete(name, id string, parts map[int]object, w http.ResponseWriter,
	r *http.Request) error {
	var readers []io.Reader
	for n := 1; n <= len(parts); n++ {
		body, err := t.open(parts[n])
		if err != nil {
			return err
		}
		defer body.Close()
		readers = append(readers, body)
	}

	o, err := t.keep(io.MultiReader(readers...))
	if err != nil {
		return err
	}

	o.SHA = ""
	o.ETag = fmt.Sprintf(`"%s-%d"`, strings.Trim(o.ETag, `"`), len(parts))
	if err := t.set(name, o, r.Header); err != nil {
		return err
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.write(change{End: id}); err != nil {
		return err
	}

	for _, p := range parts {
		if p.File != "" {
			_ = os.Remove(filepath.Join(t.Dir, p.File))
		}
	}

	_, err = fmt.Fprintf(w,
		"<CompleteMultipartUploadResult><ETag>%s</ETag></CompleteMultipartUploadResult>",
		aws.ToString(&o.ETag))
	return err
}
