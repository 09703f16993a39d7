package audio

// repacker makes frames of MPEG 2 at 22,050 samples per second anew, so that the library reads them. It takes many of
// those frames to be one byte shorter than they are, and the data of later frames can begin in that byte: sound is
// stored where earlier frames left room (ISO/IEC 11172-3, 2.4.3.4.10.1, main_data_begin). Anew, each frame has its own
// data, and a size that the library takes for what it is.
type repacker struct {
	earlier []byte // the last data of earlier frames, at most maxBegin
	out     []byte
}

// maxBegin is how far before a frame of MPEG 2 its data can begin.
const maxBegin = 255

// repack returns the frame anew. It is valid until the next call.
func (p *repacker) repack(h mp3Header, frame []byte) ([]byte, error) {
	side := map[int]int{1: 9, 2: 17}[h.channels]
	if len(frame) < 4+h.side {
		return nil, invalid("the MP3 file is damaged: a frame of %d bytes is too short", len(frame))
	}
	info := frame[4+h.side-side : 4+h.side] // after the checksum, if there is one
	begin, bits := int(info[0]), 0
	for c := range h.channels {
		// 8 bits main_data_begin, a private bit for each channel; then 63 bits a channel, which begin with the length.
		bits += number(info, 8+h.channels+63*c, 12)
	}
	data := append(p.earlier, frame[4+h.side:]...)
	from := len(p.earlier) - begin
	p.out = append(p.out[:0], frame[:4]...)
	p.out[1] |= 1  // no checksum
	p.out[2] &^= 2 // no padding
	if from >= 0 && from+(bits+7)/8 <= len(data) {
		p.out = append(append(p.out, 0), info[1:]...)
		p.out = append(p.out, data[from:from+(bits+7)/8]...)
	} else {
		p.out = append(p.out, make([]byte, side)...) // what the data is missing of is silence, as players do
	}
	p.earlier = append(p.earlier[:0], data[max(0, len(data)-maxBegin):]...)
	return p.fill(h)
}

// fill makes the frame as long as the least bit rate has them.
func (p *repacker) fill(h mp3Header) ([]byte, error) {
	for i, rate := range mpeg2Rates {
		if size := 72_000 * rate / h.rate; size >= len(p.out) {
			p.out[2] = p.out[2]&0x0f | byte(i)<<4
			return append(p.out, make([]byte, size-len(p.out))...), nil
		}
	}
	return nil, invalid("the MP3 file has a frame with %d bytes of sound at %d samples per second, which the decoder "+
		"cannot read", len(p.out), h.rate)
}

// number is the unsigned number of so many bits from bit at on.
func number(b []byte, at, bits int) int {
	n := 0
	for i := at; i < at+bits; i++ {
		n = n<<1 | int(b[i/8]>>(7-i%8)&1)
	}
	return n
}
