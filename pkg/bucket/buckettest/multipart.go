package buckettest

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

func (t *Twin) multipart(op, name string, q url.Values, w http.ResponseWriter, r *http.Request) error {
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
		t.n++
		id = fmt.Sprint("upload", t.n)
		t.uploads[id] = map[int]object{}
		_, err := fmt.Fprintf(w,
			"<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>", id)
		return err
	case "UploadPart", "UploadPartCopy":
		return t.part(op, parts, q, w, r)
	case "Complete":
		return t.complete(name, id, parts, w, r)
	case "Abort":
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.uploads, id)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return fmt.Errorf("buckettest: %s is not known", op)
}

func (t *Twin) part(op string, parts map[int]object, q url.Values, w http.ResponseWriter, r *http.Request) error {
	in := io.Reader(r.Body)
	if op == "UploadPartCopy" {
		o, err := t.source(r)
		if err != nil {
			return err
		}
		body, err := o.open()
		if err != nil {
			return err
		}
		defer body.Close()
		var from, last int64
		if _, err := fmt.Sscanf(r.Header.Get("X-Amz-Copy-Source-Range"), "bytes=%d-%d", &from, &last); err != nil {
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
	n, err := strconv.Atoi(q.Get("partNumber"))
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	parts[n] = o
	w.Header().Set("ETag", o.etag)
	w.Header().Set("X-Amz-Checksum-Crc64nvme", o.crc)
	if op == "UploadPartCopy" {
		_, err = fmt.Fprintf(w,
			"<CopyPartResult><ETag>%s</ETag><ChecksumCRC64NVME>%s</ChecksumCRC64NVME></CopyPartResult>", o.etag, o.crc)
	}
	return err
}

func (t *Twin) complete(name, id string, parts map[int]object, w http.ResponseWriter, r *http.Request) error {
	var readers []io.Reader
	for n := 1; n <= len(parts); n++ {
		body, err := parts[n].open()
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
	o.etag = fmt.Sprintf(`"%s-%d"`, strings.Trim(o.etag, `"`), len(parts))
	if err := t.set(name, o, r.Header); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.uploads, id)
	for _, p := range parts {
		if p.file != "" {
			_ = os.Remove(p.file)
		}
	}
	_, err = fmt.Fprintf(w, "<CompleteMultipartUploadResult><ETag>%s</ETag></CompleteMultipartUploadResult>",
		aws.ToString(&o.etag))
	return err
}
