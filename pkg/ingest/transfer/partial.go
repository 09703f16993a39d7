package transfer

import (
	"time"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fetch"
)

// partial is a file that is not complete yet. Its exported fields are saved. The bytes of Rest,
// less than a part, are saved with it: in base64, since it is JSON.
type partial struct {
	Upload  *bucket.Upload `json:"upload,omitempty"`
	Digests fetch.State    `json:"digests"`
	Content fetch.Content  `json:"content"`        // shows that the rest belongs to the same content
	All     bool           `json:"all,omitempty"`  // every part is there
	Rest    []byte         `json:"rest,omitempty"` // bytes received after the last part
	Most    int64          `json:"most,omitempty"` // the most bytes that were ever there: only more is progress

	row   checkm.Row
	key   string    // of the file
	noted string    // the key of this state
	whole []byte    // the file itself, if this try fetched it in one part
	since time.Time // when this try began
	sums  *fetch.Digester
	ours  error // a failure of the work bucket, not of the source
}

// size is the number of bytes received.
func (p *partial) size() int64 { return p.sums.Size + int64(len(p.Rest)) }
