package container

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
)

// stream is decompressed data that can be continued from a saved state.
type stream interface {
	// Read reads the next bytes. Errors are io.EOF, a *corruptError, or those of the data's source.
	io.Reader
	// save is the state after the last read, as JSON.
	save() (json.RawMessage, error)
	// resume continues from such a state. It comes before the first read.
	resume(json.RawMessage) error
}

// plain is data that is not compressed.
type plain struct{ in *input }

func (s *plain) Read(p []byte) (int, error) {
	n, err := s.in.read(p)
	if err == errCut {
		err = io.EOF
	}
	return n, err
}

func (s *plain) save() (json.RawMessage, error) { return json.Marshal(s.in.pos()) }

func (s *plain) resume(state json.RawMessage) error {
	var at int64
	err := json.Unmarshal(state, &at)
	s.in.seek(at)
	return err
}

// deflated is one DEFLATE stream.
type deflated struct{ *inflater }

func (s deflated) save() (json.RawMessage, error) {
	state, err := s.saved()
	if err != nil {
		return nil, err
	}
	return json.Marshal(state)
}

func (s deflated) resume(saved json.RawMessage) error {
	var state inflateState
	err := json.Unmarshal(saved, &state)
	s.inflater.resume(state)
	return err
}

// gunzip decompresses the members of a gzip file (RFC 1952), one after the other.
type gunzip struct {
	in    *input
	flate *inflater // of the member; nil: between two members
	state gzipState
}

type gzipState struct {
	In      int64         `json:"in"`              // of the next member
	Members int           `json:"members"`         // that have ended
	Flate   *inflateState `json:"flate,omitempty"` // of the member that has begun
	CRC     uint32        `json:"crc,omitempty"`
	Size    uint32        `json:"size,omitempty"`
}

func (s *gunzip) save() (json.RawMessage, error) {
	state := s.state
	state.In = s.in.pos()
	if s.flate != nil {
		f, err := s.flate.saved()
		if err != nil {
			return nil, err
		}
		state.Flate = &f
	}
	return json.Marshal(state)
}

func (s *gunzip) resume(saved json.RawMessage) error {
	if err := json.Unmarshal(saved, &s.state); err != nil {
		return err
	}
	s.in.seek(s.state.In)
	if f := s.state.Flate; f != nil {
		s.flate, s.state.Flate = newInflater(s.in), nil
		s.flate.resume(*f)
	}
	return nil
}

func (s *gunzip) Read(p []byte) (int, error) {
	for {
		if s.flate == nil {
			if err := s.header(); err != nil {
				return 0, err
			}
		}

		n, err := s.flate.Read(p)
		s.state.CRC = crc32.Update(s.state.CRC, crc32.IEEETable, p[:n])
		s.state.Size += uint32(n)
		if err != io.EOF {
			return n, err
		}
		if err := s.trailer(); err != nil {
			return 0, err
		}
	}
}

// Flags of a member's header (RFC 1952, section 2.3.1).
const (
	gzipCRC     = 1 << 1
	gzipExtra   = 1 << 2
	gzipName    = 1 << 3
	gzipComment = 1 << 4
)

// header reads the header of the next member. io.EOF is the end of the file; zeros behind the last member fill up a
// block of a tape.
func (s *gunzip) header() error {
	if s.state.Members > 0 {
		if err := s.in.zeros(); err != nil {
			return err
		}
	}

	b, err := s.in.bytes(10)
	switch {
	case err == errCut && s.state.Members > 0:
		return corrupt("behind the end of its gzip data is something else, or it was cut there")
	case err != nil:
		return err
	case b[0] == 0x1f && b[1] == 0x8b && b[2] == 8:
		s.flate, s.state.CRC, s.state.Size = newInflater(s.in), 0, 0
		return s.optional(b[3])
	case s.state.Members > 0:
		return corrupt("behind the end of its gzip data is something else")
	}
	return corrupt("it is not gzip data")
}

// optional passes over the parts of a header that its flags announce.
func (s *gunzip) optional(flags byte) (err error) {
	if flags&gzipExtra != 0 {
		var n []byte
		if n, err = s.in.bytes(2); err == nil {
			_, err = s.in.bytes(int(binary.LittleEndian.Uint16(n)))
		}
	}
	for _, text := range []byte{gzipName, gzipComment} {
		for more := flags&text != 0; more && err == nil; {
			var c []byte
			c, err = s.in.bytes(1)
			more = err == nil && c[0] != 0
		}
	}
	if flags&gzipCRC != 0 && err == nil {
		_, err = s.in.bytes(2)
	}
	return err
}

// trailer compares a member with what its end says of it.
func (s *gunzip) trailer() error {
	s.in.seek(s.flate.end())
	s.flate = nil
	b, err := s.in.bytes(8)
	if err != nil {
		return err
	}

	if crc := binary.LittleEndian.Uint32(b); crc != s.state.CRC {
		return corrupt("the CRC-32 of its gzip data is %08x; its end says %08x", s.state.CRC, crc)
	}
	if size := binary.LittleEndian.Uint32(b[4:]); size != s.state.Size {
		return corrupt("its gzip data has another size than its end says")
	}
	s.state.Members++
	return nil
}
