package fetch

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/adler32"
	"hash/crc32"
	"hash/crc64"
	"io"
	"maps"
)

// nvme is the polynomial of CRC-64/NVME, reflected.
var nvme = crc64.MakeTable(0x9a6c9329ac4bc9b5)

var algorithms = map[string]func() hash.Hash{
	"adler32": func() hash.Hash { return adler32.New() },
	"crc32":   func() hash.Hash { return crc32.NewIEEE() },
	"md5":     md5.New, "sha1": sha1.New, "sha224": sha256.New224, "sha256": sha256.New, "sha384": sha512.New384,
	"sha512": sha512.New,
}

// Digester computes several digests of one stream.
type Digester struct {
	Size  int64
	named map[string]hash.Hash
	crc   hash.Hash64
	to    io.Writer
}

// NewDigester returns a digester that always computes sha256, sha512 and CRC64NVME, and
// in addition the named algorithms ("md5").
func NewDigester(asked ...string) *Digester {
	d := &Digester{named: map[string]hash.Hash{}, crc: crc64.New(nvme)}
	to := []io.Writer{d.crc}
	for _, name := range append([]string{"sha256", "sha512"}, asked...) {
		if make, ok := algorithms[name]; ok && d.named[name] == nil {
			d.named[name] = make()
			to = append(to, d.named[name])
		}
	}
	d.to = io.MultiWriter(to...)
	return d
}

// Write adds the next bytes.
func (d *Digester) Write(p []byte) (int, error) {
	d.Size += int64(len(p))
	return d.to.Write(p)
}

// Sums returns the digests so far, in hexadecimal by name.
func (d *Digester) Sums() map[string]string {
	out := map[string]string{}
	for name, h := range d.named {
		out[name] = hex.EncodeToString(h.Sum(nil))
	}
	return out
}

// CRC64NVME returns the checksum so far as S3 writes it: base64, big endian.
func (d *Digester) CRC64NVME() string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, d.crc.Sum64()))
}

// State is the state of a Digester that is saved between two processes: each hash's own
// binary state by algorithm.
type State struct {
	Size   int64             `json:"size"`
	Hashes map[string][]byte `json:"hashes"`
}

const crcName = "crc64nvme"

// State returns the digester's state.
func (d *Digester) State() (State, error) {
	s := State{d.Size, map[string][]byte{}}
	for name, h := range d.all() {
		b, err := h.(encoding.BinaryMarshaler).MarshalBinary()
		if err != nil {
			return s, fmt.Errorf("fetch: state of %s: %w", name, err)
		}
		s.Hashes[name] = b
	}
	return s, nil
}

// Restore makes d continue from a saved state. Both digesters must have the same
// algorithms.
func (d *Digester) Restore(s State) error {
	for name, h := range d.all() {
		if err := h.(encoding.BinaryUnmarshaler).UnmarshalBinary(s.Hashes[name]); err != nil {
			return fmt.Errorf("fetch: restore %s: %w", name, err)
		}
	}
	d.Size = s.Size
	return nil
}

func (d *Digester) all() map[string]hash.Hash {
	out := maps.Clone(d.named)
	out[crcName] = d.crc
	return out
}
