package container

import (
	"encoding/binary"
	"io"
	"math/bits"
)

// inflater decompresses DEFLATE (RFC 1951). Between two reads its whole state can be saved, so that another process
// continues in the middle of a file of many gigabytes. No maintained Go library can be continued; compress/flate is the
// reference in the tests.
type inflater struct {
	in *input

	state inflateState
	hist  [window]byte // the last bytes of the output, in a circle
	at    int          // where the next byte of hist goes
	lit   codes
	dist  codes
	made  bool // lit and dist are those of state.Lengths
	err   error
}

// inflateState is what is saved of an inflater, beside its history.
type inflateState struct {
	In      int64  `json:"in"` // the next byte of the compressed data
	Bits    uint64 `json:"bits,omitempty"`
	N       uint   `json:"n,omitempty"` // how many Bits
	History []byte `json:"history,omitempty"`
	Mode    mode   `json:"mode,omitempty"`
	Last    bool   `json:"last,omitempty"`    // this block is the last one
	Stored  int    `json:"stored,omitempty"`  // bytes left of a block that is not compressed
	Lengths []byte `json:"lengths,omitempty"` // of the codes of this block: Literals of them, then those of distances
	Split   int    `json:"split,omitempty"`   // how many Lengths are those of literals and lengths
	Length  int    `json:"length,omitempty"`  // bytes left of a match
	Dist    int    `json:"dist,omitempty"`    // of that match
	Known   int    `json:"known,omitempty"`   // bytes of the history, at most a window
}

// mode is what comes next in the compressed data.
type mode byte

const (
	atHeader mode = iota
	inStored
	inCodes
	atEnd
)

// Sizes of RFC 1951.
const (
	window   = 32 << 10
	maxLits  = 286
	maxDists = 30
)

func newInflater(in *input) *inflater { return &inflater{in: in} }

// reset begins with other data.
func (f *inflater) reset(in *input) {
	f.in, f.state, f.at, f.made, f.err = in, inflateState{}, 0, false, nil
}

// resume continues from a saved state.
func (f *inflater) resume(s inflateState) {
	f.state, f.at, f.made = s, 0, false
	copy(f.hist[window-len(s.History):], s.History)
	f.state.History = nil
	f.in.seek(s.In)
}

// saved is the state after the last read. After a failure there is none: it would be one from the middle of a header.
func (f *inflater) saved() (inflateState, error) {
	if f.err != nil && f.err != io.EOF {
		return inflateState{}, f.err
	}

	s := f.state
	s.In = f.in.pos()
	s.History = append(append([]byte{}, f.hist[f.at:]...), f.hist[:f.at]...)[window-s.Known:]
	return s, nil
}

// end is where the byte after the compressed data is; whole bytes that were read ahead are given back.
func (f *inflater) end() int64 {
	return f.in.pos() - int64(f.state.N/8)
}

// Read decompresses the next bytes. io.EOF is the end of the last block; a *corruptError says what is wrong.
func (f *inflater) Read(p []byte) (n int, err error) {
	for n == 0 && f.err == nil && len(p) > 0 {
		n, f.err = f.read(p)
	}
	f.remember(p[:n])
	if n > 0 {
		return n, nil // an error comes at the next read
	}
	return 0, f.err
}

// read decompresses until p is full or something is wrong.
func (f *inflater) read(p []byte) (n int, err error) {
	s := &f.state
	for n < len(p) && err == nil {
		switch s.Mode {
		case atHeader:
			err = f.header()
		case inStored:
			var m int
			m, err = f.in.read(p[n:min(len(p), n+s.Stored)])
			n, s.Stored = n+m, s.Stored-m
			if s.Stored == 0 {
				f.next()
			}
		case inCodes:
			n, err = f.symbols(p, n)
		case atEnd:
			return n, io.EOF
		}
	}
	return n, err
}

// next ends a block.
func (f *inflater) next() {
	f.state.Mode, f.state.Lengths, f.state.Split = atHeader, nil, 0
	if f.state.Last {
		f.state.Mode = atEnd
	}
}

// remember keeps the last bytes of the output.
func (f *inflater) remember(p []byte) {
	f.state.Known = min(window, f.state.Known+len(p))
	p = p[max(0, len(p)-window):]
	n := copy(f.hist[f.at:], p)
	copy(f.hist[:], p[n:])
	f.at = (f.at + len(p)) % window
}

// fill reads ahead as many whole bytes as fit.
func (f *inflater) fill() error {
	s := &f.state
	if b := f.in.ahead(); len(b) >= 8 {
		s.Bits |= binary.LittleEndian.Uint64(b) << s.N
		take := (63 - s.N) >> 3
		f.in.skip(int(take))
		s.N += take << 3
		s.Bits &= 1<<s.N - 1
		return nil
	}

	for s.N <= 56 {
		c, err := f.in.readByte()
		if err == io.EOF {
			return nil // whether enough is there is seen when it is used
		}
		if err != nil {
			return err
		}
		s.Bits |= uint64(c) << s.N
		s.N += 8
	}
	return nil
}

// take reads n bits, at most 32.
func (f *inflater) take(n uint) (uint32, error) {
	s := &f.state
	if s.N < n {
		if err := f.fill(); err != nil {
			return 0, err
		}
		if s.N < n {
			return 0, errCut
		}
	}
	v := uint32(s.Bits & (1<<n - 1))
	s.Bits >>= n
	s.N -= n
	return v, nil
}

// header reads the beginning of a block (section 3.2.3).
func (f *inflater) header() error {
	v, err := f.take(3)
	if err != nil {
		return err
	}

	f.state.Last = v&1 == 1
	switch v >> 1 {
	case 0:
		return f.stored()
	case 1:
		f.state.Lengths, f.state.Split = fixedLengths(), 288
	case 2:
		if err := f.dynamic(); err != nil {
			return err
		}
	default:
		return corrupt("a block has a type that DEFLATE does not have")
	}

	f.state.Mode, f.made = inCodes, false
	return nil
}

// stored reads the header of a block that is not compressed (section 3.2.4).
func (f *inflater) stored() error {
	s := &f.state
	if _, err := f.take(s.N % 8); err != nil {
		return err
	}

	v, err := f.take(32)
	if err != nil {
		return err
	}

	if uint16(v) != ^uint16(v>>16) {
		return corrupt("the two lengths of a stored block differ")
	}

	// The bytes that were read ahead belong to the block.
	f.in.seek(f.in.pos() - int64(s.N/8))
	s.Bits, s.N = 0, 0
	s.Mode, s.Stored = inStored, int(uint16(v))
	if s.Stored == 0 {
		f.next()
	}
	return nil
}

// order of the lengths of the codes of lengths (section 3.2.7).
var order = [19]int{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamic reads the lengths of a block's codes (section 3.2.7).
func (f *inflater) dynamic() error {
	v, err := f.take(14)
	if err != nil {
		return err
	}

	lits, dists, n := int(v&31)+257, int(v>>5&31)+1, int(v>>10)+4
	if lits > maxLits || dists > maxDists {
		return corrupt("a block has %d and %d codes; at most %d and %d are allowed", lits, dists, maxLits, maxDists)
	}

	var of [19]byte
	for i := range n {
		v, err := f.take(3)
		if err != nil {
			return err
		}
		of[order[i]] = byte(v)
	}

	var c codes
	if !c.make(of[:]) {
		return corrupt("the codes of the lengths of a block are not complete")
	}

	lengths, err := f.lengths(&c, lits+dists)
	f.state.Lengths, f.state.Split = lengths, lits
	return err
}

// lengths reads n lengths of codes, of which some are repeated.
func (f *inflater) lengths(c *codes, n int) ([]byte, error) {
	lengths := make([]byte, 0, n)
	for len(lengths) < n {
		symbol, err := f.symbol(c)
		if err != nil {
			return nil, err
		}

		if symbol < 16 {
			lengths = append(lengths, byte(symbol))
			continue
		}

		last, base, extra := byte(0), uint32(3), uint(3)
		switch symbol {
		case 16:
			if len(lengths) == 0 {
				return nil, corrupt("the first length of a code repeats the one before")
			}
			last, extra = lengths[len(lengths)-1], 2
		case 18:
			base, extra = 11, 7
		}

		v, err := f.take(extra)
		if err != nil {
			return nil, err
		}

		if len(lengths)+int(base+v) > n {
			return nil, corrupt("a block has more lengths than codes")
		}
		for range base + v {
			lengths = append(lengths, last)
		}
	}
	return lengths, nil
}

// symbol reads one code.
func (f *inflater) symbol(c *codes) (int, error) {
	s := &f.state
	if s.N < 15 {
		if err := f.fill(); err != nil {
			return 0, err
		}
	}

	e := c.find(s.Bits)
	switch n := uint(e & 15); {
	case n == 0 && s.N < uint(c.longest):
		return 0, errCut
	case n == 0:
		return 0, corrupt("a code is not one of its block's")
	case n > s.N:
		return 0, errCut
	default:
		s.Bits >>= n
		s.N -= n
		return int(e >> 4), nil
	}
}

// Tables of section 3.2.5: the base and the extra bits of lengths from 257, and of distances.
var (
	lengthBase = [29]int{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115,
		131, 163, 195, 227, 258}
	lengthBits = [29]uint{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	distBase   = [30]int{1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537,
		2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577}
	distBits = [30]uint{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12,
		13, 13}
)

// symbols decompresses a part of a block into p, from n on.
func (f *inflater) symbols(p []byte, n int) (int, error) {
	s := &f.state
	if !f.made {
		if !f.lit.make(s.Lengths[:s.Split]) || !f.dist.make(s.Lengths[s.Split:]) {
			return n, corrupt("the codes of a block are not complete")
		}
		f.made = true
	}

	n = f.match(p, n) // the rest of one that did not fit
	for n < len(p) {
		symbol, err := f.symbol(&f.lit)
		if err != nil {
			return n, err
		}

		switch {
		case symbol < 256:
			p[n] = byte(symbol)
			n++
			continue
		case symbol == 256:
			f.next()
			return n, nil
		case symbol >= maxLits:
			return n, corrupt("a length is not one that DEFLATE has")
		}

		if err := f.pair(symbol-257, n); err != nil {
			return n, err
		}
		n = f.match(p, n)
	}
	return n, nil
}

// pair reads the rest of a match: its length and its distance. n bytes are in the output of this read.
func (f *inflater) pair(length, n int) error {
	s := &f.state
	extra, err := f.take(lengthBits[length])
	if err != nil {
		return err
	}

	symbol, err := f.symbol(&f.dist)
	if err != nil {
		return err
	}

	if symbol >= maxDists {
		return corrupt("a distance is not one that DEFLATE has")
	}

	far, err := f.take(distBits[symbol])
	if err != nil {
		return err
	}

	dist := distBase[symbol] + int(far)
	if dist > s.Known+n {
		return corrupt("a distance goes to before the beginning")
	}
	s.Length, s.Dist = lengthBase[length]+int(extra), dist
	return nil
}

// match copies earlier output, as much as fits into p, and returns how much p has.
func (f *inflater) match(p []byte, n int) int {
	s := &f.state
	end := min(n+s.Length, len(p))
	s.Length -= end - n
	for n < end && s.Dist > n { // from before this read
		from := (f.at + window - (s.Dist - n)) % window
		n += copy(p[n:min(end, n+s.Dist-n)], f.hist[from:min(window, from+s.Dist-n)])
	}

	for n < end { // it may overlap itself
		n += copy(p[n:end], p[n-s.Dist:n])
	}
	return n
}

// fixedLengths are those of section 3.2.6. The last two distances are in the codes, but not in the data.
func fixedLengths() []byte {
	all := make([]byte, 288+32)
	for i := range all {
		switch {
		case i < 144:
			all[i] = 8
		case i < 256:
			all[i] = 9
		case i < 280:
			all[i] = 7
		case i < 288:
			all[i] = 8
		default:
			all[i] = 5
		}
	}
	return all
}

// primary is how many bits are looked up at once.
const primary = 10

// codes are the Huffman codes of a block. An entry has a symbol and, in its last four bits, the length of its code; 0
// is no code. Longer codes are in a second table.
type codes struct {
	first   [1 << primary]uint16
	second  []uint16
	longest int
}

// find is the entry of the code with which some bits begin.
func (c *codes) find(b uint64) uint16 {
	e := c.first[b&(1<<primary-1)]
	if e&15 != 15 || c.longest <= primary {
		return e
	}
	// A long code: its entry is the number of the second table.
	rest := c.longest - primary
	return c.second[int(e>>4)<<rest+int(b>>primary&(1<<rest-1))]
}

// make makes the codes from their lengths (section 3.2.2). It reports whether they can be used: that is decided as
// compress/flate does.
func (c *codes) make(lengths []byte) bool {
	var count, next [16]int
	for _, n := range lengths {
		count[n]++
	}

	count[0], c.longest = 0, 0
	code, free := 0, 1
	for n := 1; n <= 15; n++ {
		code = (code + count[n-1]) << 1
		next[n] = code
		free = free<<1 - count[n]
		if count[n] > 0 {
			c.longest = n
		}
		if free < 0 {
			return false
		}
	}

	one := c.longest == 1 && count[1] == 1
	if free > 0 && c.longest > 0 && !one {
		return false
	}

	clear(c.first[:])
	c.second = c.second[:0]
	for symbol, n := range lengths {
		if n == 0 {
			continue
		}
		c.add(symbol, int(n), next[n])
		next[n]++
	}
	return true
}

// add adds a symbol with a code of n bits.
func (c *codes) add(symbol, n, code int) {
	// The bits of a code come with the most significant one first.
	reversed := int(bits.Reverse16(uint16(code)) >> (16 - n))
	if n <= primary {
		for i := reversed; i < 1<<primary; i += 1 << n {
			c.first[i] = uint16(symbol)<<4 | uint16(n)
		}
		return
	}

	rest := c.longest - primary
	low := reversed & (1<<primary - 1)
	if c.first[low] == 0 {
		c.first[low] = uint16(len(c.second)>>rest)<<4 | 15
		for range 1 << rest {
			c.second = append(c.second, 0)
		}
	}

	table := c.second[int(c.first[low]>>4)<<rest:]
	for i := reversed >> primary; i < 1<<rest; i += 1 << (n - primary) {
		table[i] = uint16(symbol)<<4 | uint16(n)
	}
}
