package pronom

import (
	"errors"
	"sync"

	"github.com/richardlehane/siegfried"
	"github.com/richardlehane/siegfried/pkg/static"
)

// Limits bound what one file may cost.
type Limits struct {
	Read    int64  // bytes that are read of a file
	Listing int64  // bytes of a ZIP file's directory, which is in memory
	Entries uint64 // of that directory
	Entry   uint64 // bytes of a ZIP entry from which on it may not be packed more densely than Ratio
	Ratio   uint64 // unpacked bytes per packed byte
}

// DefaultLimits fit a function with 512 MiB of memory and of disk. Siegfried keeps unpacked entries of
// up to 64 MiB in memory, and larger ones in a temporary file.
var DefaultLimits = Limits{
	Read:    32 << 20,
	Entries: 50_000,
	Listing: 8 << 20,
	Entry:   64 << 20,
	Ratio:   50,
}

// Identifier identifies files. It can identify several at once. The engine keeps no state of a
// file.
type Identifier struct {
	Limits     Limits
	Signatures string // their versions
	engine     *siegfried.Siegfried
}

// load loads the signatures, once in a process: after the first file they take 70 MB. The engine can identify several
// files at once.
var load = sync.OnceValue(static.New)

// New makes an Identifier. The first one takes about 60 ms, to load the signatures.
func New() (*Identifier, error) {
	engine := load()
	if engine == nil || len(engine.Identifiers()) != 1 {
		return nil, errors.New("pronom: the signatures of this program cannot be loaded")
	}
	return &Identifier{
		Limits:     DefaultLimits,
		Signatures: engine.Identifiers()[0][1],
		engine:     engine,
	}, nil
}
