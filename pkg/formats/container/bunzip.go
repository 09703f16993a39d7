package container

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"encoding/json"
	"io"
)

// bunzip decompresses bzip2 data. compress/bzip2 cannot be continued, but the blocks are independent: each is made a
// file of one block for it, so any block can be the first.
type bunzip struct {
	in    *input
	marks uint64 // the bits of a mark that are compared; fewer in tests
	state bunzipState

	block io.Reader // nil: none has begun
	crc   uint32    // of the block
	after int64     // the bit behind the block
}

type bunzipState struct {
	At      int64  `json:"at"`              // the bit at which the next block begins
	Level   byte   `json:"level,omitempty"` // of the stream; 0: none has begun
	CRC     uint32 `json:"crc,omitempty"`   // of the blocks of the stream so far
	Skip    int64  `json:"skip,omitempty"`  // bytes of the block that were read
	Streams int    `json:"streams,omitempty"`
}

// The marks at which a block begins, and at which a stream ends.
const (
	blockMark = 0x314159265359
	endMark   = 0x177245385090
	markBits  = 48

	// mostBlock is more than the compressed data of a block can have: 900,000 symbols of 20 bits, and tables.
	mostBlock = 3 << 20
)

func newBunzip(in *input) *bunzip {
	return &bunzip{in: in, marks: 1<<markBits - 1, state: bunzipState{At: in.pos() * 8}}
}

func (s *bunzip) save() (json.RawMessage, error) { return json.Marshal(s.state) }

func (s *bunzip) resume(saved json.RawMessage) error { return json.Unmarshal(saved, &s.state) }

func (s *bunzip) Read(p []byte) (int, error) {
	for {
		if s.block == nil {
			if err := s.begin(); err != nil {
				return 0, err
			}
		}

		n, err := s.block.Read(p)
		s.state.Skip += int64(n)
		switch {
		case n > 0:
			return n, nil
		case err != io.EOF:
			return 0, corrupt("a block of its bzip2 data is damaged: %v", err)
		}

		s.state.CRC = (s.state.CRC<<1 | s.state.CRC>>31) ^ s.crc
		s.state.At, s.state.Skip, s.block = s.after, 0, nil
	}
}

// begin finds the next block.
func (s *bunzip) begin() error {
	for {
		if s.state.Level == 0 {
			if err := s.header(); err != nil {
				return err
			}
		}

		r := bitReader{in: s.in}
		s.in.seek(s.state.At / 8)
		if _, err := r.read(uint(s.state.At % 8)); err != nil {
			return err
		}

		mark, err := r.read(markBits)
		if err != nil {
			return err
		}

		crc, err := r.read(32)
		switch {
		case err != nil:
			return err
		case mark == blockMark:
			s.crc = uint32(crc)
			return s.open(&r)
		case mark != endMark:
			return corrupt("a block of its bzip2 data is damaged: the mark of the next one is not there")
		case uint32(crc) != s.state.CRC:
			return corrupt("the CRC of its bzip2 data is %08x; its end says %08x", s.state.CRC, crc)
		}

		// The next stream begins with a byte.
		s.state = bunzipState{At: s.in.pos() * 8, Streams: s.state.Streams + 1}
	}
}

// header reads the header of the next stream. io.EOF is the end of the file.
func (s *bunzip) header() error {
	s.in.seek(s.state.At / 8)
	if s.state.Streams > 0 {
		if err := s.in.zeros(); err != nil {
			return err
		}
	}

	b, err := s.in.bytes(4)
	switch {
	case err != nil:
		return err
	case string(b[:3]) == "BZh" && b[3] >= '1' && b[3] <= '9':
		s.state.Level, s.state.At = b[3], s.in.pos()*8
		return nil
	case s.state.Streams > 0:
		return corrupt("behind the end of its bzip2 data is something else")
	}
	return corrupt("it is not bzip2 data")
}

// open opens the block whose mark and CRC were read. It ends at the next mark; since the same bits can also be in the
// middle of a block, one that is not complete goes on to the mark behind.
func (s *bunzip) open(r *bitReader) error {
	data := append([]byte("BZh"), s.state.Level)
	data = binary.BigEndian.AppendUint64(data, blockMark<<16|uint64(s.crc>>16))
	data = binary.BigEndian.AppendUint16(data, uint16(s.crc))

	for last := uint64(0); len(data) < mostBlock; {
		c, err := r.read(8)
		if err != nil {
			return err
		}

		data, last = append(data, byte(c)), last<<8|c
		for behind := range uint(8) {
			if m := last >> behind & s.marks; m != blockMark&s.marks && m != endMark&s.marks {
				continue
			}
			size := len(data)*8 - markBits - int(behind)
			s.after = s.state.At + int64(size) - 32 // without the header of the file of one block
			if whole, err := s.whole(data, size); whole || err != nil {
				return err
			}
		}
	}
	return corrupt("a block of its bzip2 data is damaged: it has no end")
}

// whole opens a block of size bits, and reports whether it is complete.
func (s *bunzip) whole(data []byte, size int) (bool, error) {
	one := append([]byte{}, data[:(size+7)/8]...)
	one = appendBits(one, size, endMark, markBits)
	one = appendBits(one, size+markBits, uint64(s.crc), 32)

	r := bufio.NewReaderSize(bzip2.NewReader(bytes.NewReader(one)), inputBlock)
	if _, err := r.Peek(1); err != nil {
		return false, nil
	}

	s.block = r
	_, err := io.CopyN(io.Discard, r, s.state.Skip)
	if err != nil {
		err = corrupt("a block of its bzip2 data is damaged: %v", err)
	}
	return true, err
}

// appendBits appends the last n bits of v to data, which has size bits.
func appendBits(data []byte, size int, v uint64, n int) []byte {
	data = data[:(size+7)/8]
	if rest := size % 8; rest > 0 {
		data[len(data)-1] &= 0xff << (8 - rest)
	}
	for i := n - 1; i >= 0; i-- {
		if size%8 == 0 {
			data = append(data, 0)
		}
		data[len(data)-1] |= byte(v>>i&1) << (7 - size%8)
		size++
	}
	return data
}

// bitReader reads bits, the most significant one of a byte first.
type bitReader struct {
	in   *input
	bits uint64
	n    uint
}

// read reads n bits, at most 48; fewer are errCut.
func (r *bitReader) read(n uint) (uint64, error) {
	for r.n < n {
		c, err := r.in.readByte()
		if err == io.EOF {
			err = errCut
		}
		if err != nil {
			return 0, err
		}
		r.bits, r.n = r.bits<<8|uint64(c), r.n+8
	}
	r.n -= n
	v := r.bits >> r.n & (1<<n - 1)
	return v, nil
}
