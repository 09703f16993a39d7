package jobs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	v1 "archivist/pkg/api/v1"
)

// uploads is an archive that takes uploads, and the storage of their files: it keeps the contract of the API.
type uploads struct {
	*httptest.Server
	t *testing.T

	mu    sync.Mutex
	all   []*v1.Upload
	keys  map[string]string               // the id of the upload, by its idempotency key and request
	files map[string]map[string]*uploaded // by upload and sum
	taken map[string]v1.BatchRequest      // by idempotency key

	profile  v1.Profile
	refused  string // why no upload is opened
	partSize int64
	perFile  int // URLs in one answer
	expired  int // so many next PUTs are refused as expired
	broken   int // so many next PUTs get a 503
	requests int
	// killed ends the client at a request: before it has an effect, or after that.
	killed  func(n int) (before, after bool)
	kill    context.CancelFunc
	onPut   func(sum string)
	puts    map[string]int    // by sum and number of the part
	busy    map[net.Conn]bool // those of which a request is read or served
	changes *sync.Cond        // of busy
}

// uploaded is a file of an upload.
type uploaded struct {
	size   int64
	data   []byte // nil: not sent
	parts  map[int][]byte
	stored bool
}

func newUploads(t *testing.T) *uploads {
	u := &uploads{t: t, partSize: 1 << 10, perFile: 3, keys: map[string]string{}, puts: map[string]int{},
		files: map[string]map[string]*uploaded{}, taken: map[string]v1.BatchRequest{},
		busy: map[net.Conn]bool{}, changes: sync.NewCond(&sync.Mutex{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/uploads", u.open)
	mux.HandleFunc("GET /v1/uploads", func(w http.ResponseWriter, _ *http.Request) {
		list := v1.List[v1.Upload]{}
		for _, one := range slices.Backward(u.all) {
			list.Items = append(list.Items, *one)
		}
		u.answer(w, list)
	})
	mux.HandleFunc("POST /v1/uploads/{id}/files", u.list)
	mux.HandleFunc("POST /v1/uploads/{id}/stored", u.verify)
	mux.HandleFunc("POST /v1/uploads/{id}/actions", func(w http.ResponseWriter, r *http.Request) {
		one := u.find(r.PathValue("id"))
		one.State = v1.UploadDiscarded
		u.remove(one.ID)
		u.answer(w, one)
	})
	mux.HandleFunc("PUT /storage/{id}/{sum}/{part}", u.put)
	mux.HandleFunc("POST /v1/batches", u.submit)
	mux.HandleFunc("GET /v1/batches/{id}", func(w http.ResponseWriter, r *http.Request) {
		u.answer(w, v1.Batch{ID: r.PathValue("id"), State: v1.Completed, Counts: v1.Counts{Expected: 1, Completed: 1}})
	})
	mux.HandleFunc("GET /v1/collections/maps", func(w http.ResponseWriter, _ *http.Request) {
		u.answer(w, v1.Collection{Name: "maps", Profile: u.profile})
	})
	mux.HandleFunc("GET /v1/objects", func(w http.ResponseWriter, _ *http.Request) {
		u.answer(w,
			v1.List[v1.Object]{})
	})
	u.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.serve(mux, w, r)
	}))
	u.Config.ConnState = func(c net.Conn, is http.ConnState) {
		u.changes.L.Lock()
		defer u.changes.L.Unlock()
		if is == http.StateActive {
			u.busy[c] = true
		} else {
			delete(u.busy, c)
		}
		u.changes.Broadcast()
	}
	u.Start()
	t.Cleanup(u.Close)
	return u
}

// settle returns when nothing that a client has sent, and given up, can have an effect any more.
func (u *uploads) settle() {
	u.CloseClientConnections()
	u.changes.L.Lock()
	defer u.changes.L.Unlock()
	for len(u.busy) > 0 {
		u.changes.Wait()
	}
}

// serve serves one request at a time, and ends the client at the one that is to be its last.
func (u *uploads) serve(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body) // without the lock: the client may wait for another answer meanwhile
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests++
	var before, after bool
	if u.killed != nil {
		before, after = u.killed(u.requests)
	}
	if before || err != nil {
		if before {
			u.kill()
		}
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	mux.ServeHTTP(w, r)
	if after {
		u.kill()
		panic(http.ErrAbortHandler)
	}
}

func (u *uploads) answer(w http.ResponseWriter, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		u.t.Error(err)
	}
}

func (u *uploads) refuse(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	u.answer(w, v1.Problem{Type: "urn:archivist:problem:x", Status: status, Detail: detail})
}

func (u *uploads) find(id string) *v1.Upload {
	at := slices.IndexFunc(u.all, func(one *v1.Upload) bool { return one.ID == id })
	if at < 0 {
		u.t.Errorf("there is no upload %q", id)
		return &v1.Upload{}
	}
	return u.all[at]
}

func (u *uploads) decode(r *http.Request, into any) {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		u.t.Errorf("%s: %v", r.URL.Path, err)
	}
}

func (u *uploads) open(w http.ResponseWriter, r *http.Request) {
	var in v1.UploadRequest
	u.decode(r, &in)
	if u.refused != "" {
		u.refuse(w, http.StatusConflict, u.refused)
		return
	}

	key := r.Header.Get("Idempotency-Key")
	id := u.keys[key]
	if id == "" || in.Again && u.find(id).State == v1.UploadSubmitted {
		id = fmt.Sprintf("01M7ZBMEYHBB62YP6RY21T1%03d", len(u.all))
		u.keys[key], u.files[id] = id, map[string]*uploaded{}
		u.all = append(u.all, &v1.Upload{ID: id, Collection: in.Collection, State: v1.UploadOpen, Files: in.Files,
			Bytes: in.Bytes, Expires: "2026-11-29T06:00:00Z"})
	}
	one := u.find(id)
	if one.Files != in.Files || one.Bytes != in.Bytes {
		u.t.Errorf("the key %s is used for %+v and %+v", key, one, in)
	}
	w.WriteHeader(http.StatusCreated)
	u.answer(w, one)
}

// remove ends an upload: its key is free, unless it names another one.
func (u *uploads) remove(id string) {
	maps.DeleteFunc(u.keys, func(_, of string) bool { return of == id })
}

func (u *uploads) list(w http.ResponseWriter, r *http.Request) {
	one := u.find(r.PathValue("id"))
	var in v1.ListedFiles
	u.decode(r, &in)
	if len(in.Files) > 100 {
		u.t.Errorf("%d files are listed at once", len(in.Files))
	}
	var out v1.SendFiles
	for _, f := range in.Files {
		have := u.files[one.ID][f.SHA256]
		if have == nil {
			have = &uploaded{size: f.Size, parts: map[int][]byte{}}
			u.files[one.ID][f.SHA256] = have
			one.Listed.Files, one.Listed.Bytes = one.Listed.Files+1, one.Listed.Bytes+f.Size
		}
		u.look(one, f.SHA256)
		item := v1.SendFile{ListedFile: f, Stored: have.stored}
		at := u.URL + "/storage/" + one.ID + "/" + f.SHA256 + "/"
		switch {
		case have.stored:
		case f.Size <= u.partSize:
			item.Put = &v1.SendPut{URL: at + "0", Headers: map[string]string{"x-amz-checksum-sha256": f.SHA256}}
		default:
			count := int((f.Size + u.partSize - 1) / u.partSize)
			item.Parts = &v1.SendParts{PartSize: u.partSize, Count: count,
				Stored: slices.Sorted(maps.Keys(have.parts)), URLs: []v1.SendPart{}}
			for n := 1; n <= count && len(item.Parts.URLs) < u.perFile; n++ {
				if have.parts[n] == nil {
					item.Parts.URLs = append(item.Parts.URLs, v1.SendPart{Number: n, URL: at + strconv.Itoa(n)})
				}
			}
		}
		out.Items = append(out.Items, item)
	}
	u.answer(w, out)
}

func (u *uploads) put(w http.ResponseWriter, r *http.Request) {
	sum, part := r.PathValue("sum"), r.PathValue("part")
	data, err := io.ReadAll(r.Body)
	if err != nil {
		u.t.Error(err)
	}
	if u.onPut != nil {
		u.onPut(sum)
	}
	if r.Header.Get("Authorization") != "" {
		u.t.Error("the storage gets the token of the API")
	}
	switch {
	case u.expired > 0:
		u.expired--
		http.Error(w, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
		return
	case u.broken > 0:
		u.broken--
		http.Error(w, "<Error><Code>SlowDown</Code></Error>", http.StatusServiceUnavailable)
		return
	}

	f := u.files[r.PathValue("id")][sum]
	u.puts[sum+"/"+part]++
	n, _ := strconv.Atoi(part)
	if n > 0 {
		f.parts[n] = data
		return
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != sum || r.Header.Get("x-amz-checksum-sha256") != sum {
		http.Error(w, "<Error><Code>BadDigest</Code></Error>", http.StatusBadRequest)
		return
	}
	f.data = data
}

// look looks for a file in the storage: it is stored if all of it is there.
func (u *uploads) look(one *v1.Upload, sum string) *uploaded {
	f := u.files[one.ID][sum]
	if f.size > u.partSize {
		f.data = nil
		for _, n := range slices.Sorted(maps.Keys(f.parts)) {
			f.data = append(f.data, f.parts[n]...)
		}
	}
	there := (f.data != nil || f.size == 0 && u.puts[sum+"/0"] > 0) && int64(len(f.data)) == f.size
	if there && !f.stored {
		f.stored = true
		one.Stored.Files, one.Stored.Bytes = one.Stored.Files+1, one.Stored.Bytes+f.size
	}
	return f
}

func (u *uploads) verify(w http.ResponseWriter, r *http.Request) {
	one := u.find(r.PathValue("id"))
	var in v1.StoredRequest
	u.decode(r, &in)
	var out v1.StoredFiles
	for _, sum := range in.Files {
		item := v1.StoredFile{SHA256: sum, Stored: u.look(one, sum).stored}
		if !item.Stored {
			item.Problem = "it is not there yet; send it"
		}
		out.Items = append(out.Items, item)
	}
	u.answer(w, out)
}

func (u *uploads) submit(w http.ResponseWriter, r *http.Request) {
	var in v1.BatchRequest
	u.decode(r, &in)
	one := u.find(in.Payload.Upload)
	key := r.Header.Get("Idempotency-Key")
	if before, known := u.taken[key]; known {
		if fmt.Sprintf("%+v", before.Metadata) != fmt.Sprintf("%+v", in.Metadata) {
			u.refuse(w, http.StatusConflict, "the Idempotency-Key was used with another request")
			return
		}
		u.answer(w, v1.Accepted{ID: one.Batch, State: v1.Pending})
		return
	}
	if one.State != v1.UploadOpen || one.Listed != one.Stored || one.Stored.Files != one.Files ||
		one.Stored.Bytes != one.Bytes {
		u.t.Errorf("%+v is submitted", one)
	}
	if !u.files[one.ID][in.Payload.File].stored {
		u.t.Errorf("the payload of %+v is not stored", in)
	}
	u.taken[key] = in
	one.State, one.Batch = v1.UploadSubmitted, fmt.Sprintf("B%d", len(u.taken))
	u.answer(w, v1.Accepted{ID: one.Batch, State: v1.Pending})
}

// text is the content of a file of the last upload.
func (u *uploads) text(sum string) string {
	f := u.files[u.all[len(u.all)-1].ID][strings.TrimPrefix(sum, "upload://")]
	if f == nil {
		u.t.Errorf("there is no file %s", sum)
		return ""
	}
	return string(f.data)
}

// twice are the requests whose content the storage got more than once.
func (u *uploads) twice() (out []string) {
	for of, n := range u.puts {
		if n > 1 {
			out = append(out, of)
		}
	}
	return out
}
