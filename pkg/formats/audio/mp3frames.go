package audio

import (
	"bufio"
	"encoding/binary"
	"io"
)

// mp3Header is the header of a frame of layer III (ISO/IEC 11172-3, 2.4.2.3, and 13818-3), or
// of MPEG 2.5, which halves the rates of MPEG 2 once more. It is made of four bytes; a
// checksum of two bytes may follow.
type mp3Header struct {
	rate, channels int
	samples        int // of each channel
	size           int // bytes, header included
	side           int // bytes between the header and the sound: checksum and side information
}

// Bit rates of layer III in 1000 bits per second; 0: not fixed.
var (
	mpeg1Rates = [15]int{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}
	mpeg2Rates = [15]int{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}
	mpegRates  = [3]int{44100, 48000, 32000}
)

// isSync says whether b begins with a header of MPEG audio of any layer. It needs eleven bits
// that are set, a version, a layer, a bit rate and a sampling rate that are not reserved.
func isSync(b []byte) bool {
	return len(b) >= 4 && b[0] == 0xff && b[1]&0xe0 == 0xe0 && b[1]&0x18 != 0x08 && b[1]&0x06 != 0 &&
		b[2]>>4 != 15 && b[2]>>2&3 != 3
}

// startsFrames says whether a file begins with MPEG audio: with a frame, maybe after zeros.
func startsFrames(head []byte) bool {
	for len(head) > 0 && head[0] == 0 {
		head = head[1:]
	}
	return isSync(head)
}

// parseHeader reads a header that isSync. The size of a frame is its samples by its bit rate,
// in bytes: 144 = 1152 / 8, and 72 = 576 / 8. Layers I and II, and a free bit rate, whose
// frames do not say their size, are refused.
func parseHeader(b []byte) (h mp3Header, err error) {
	version, layer := b[1]>>3&3, b[1]>>1&3 // 3: MPEG 1, 2: MPEG 2, 0: MPEG 2.5
	if layer != 1 {
		return h, invalid("the file is MPEG audio of layer %d; only layer III (MP3) is read", 4-layer)
	}

	if b[2]>>4 == 0 {
		return h, invalid("the MP3 file has a free bit rate, which is not read")
	}

	h.rate, h.channels, h.samples = mpegRates[b[2]>>2&3], 2, 1152
	mono := b[3]>>6 == 3
	if mono {
		h.channels = 1
	}

	padding := int(b[2] >> 1 & 1)
	if version == 3 {
		h.size = 144_000*mpeg1Rates[b[2]>>4]/h.rate + padding
		h.side = map[bool]int{true: 17, false: 32}[mono]
	} else {
		h.rate, h.samples = h.rate/(4-int(version)), 576
		h.size = 72_000*mpeg2Rates[b[2]>>4]/h.rate + padding
		h.side = map[bool]int{true: 9, false: 17}[mono]
	}

	if b[1]&1 == 0 {
		h.side += 2
	}
	return h, nil
}

// mp3Tag is what the first frame says about the file, if it is an Info, Xing or VBRI frame.
// The delay and padding are those of the LAME tag (LAME's source, libmp3lame/VbrTag.c), which
// other encoders write too. Zero values mean that there is none, or that it does not say.
type mp3Tag struct {
	frames         int // of sound; 0: not said
	gapless        bool
	delay, padding int // samples that the encoder has put before and after the sound
}

// mp3Frames gives the frames of a file, each whole, and nothing else. It never gives a part
// of a frame: a decoder would fill it up with silence or noise.
type mp3Frames struct {
	r     *bufio.Reader
	first mp3Header
	want  int // frames that the file says it has; 0: not said
	got   int
	buf   [mostFrame]byte
	again []byte // the first frame, if it is to be given once more
}

// newFrames finds the first frame, and leaves it out if it only describes the file. A frame
// with sound is given once more by the first call of next.
func newFrames(r *bufio.Reader) (*mp3Frames, mp3Tag, error) {
	f := &mp3Frames{r: r}
	frame, err := f.next()
	if err != nil {
		if err == io.EOF {
			err = invalid("the MP3 file has no frame")
		}
		return nil, mp3Tag{}, err
	}

	tag, only := readTag(frame, f.first.side)
	if only {
		f.got, f.want = 0, tag.frames
	} else {
		f.again = frame
	}
	return f, tag, nil
}

// readTag reads the tag of a frame, and says whether the frame is only a tag. side is that of
// its header. The tag stands where the sound would begin; VBRI always 32 bytes behind the
// header.
func readTag(frame []byte, side int) (t mp3Tag, only bool) {
	if vbri := 36; len(frame) >= vbri+18 && string(frame[vbri:vbri+4]) == "VBRI" {
		return mp3Tag{frames: int(binary.BigEndian.Uint32(frame[vbri+14:]))}, true
	}

	// Some writers write no checksum though the header says so.
	for _, at := range []int{4 + side, 4 + side - 2} {
		if len(frame) < at+8 || string(frame[at:at+4]) != "Xing" && string(frame[at:at+4]) != "Info" {
			continue
		}
		flags, b := frame[at+7], frame[at+8:]
		if flags&1 != 0 && len(b) >= 4 {
			t.frames = int(binary.BigEndian.Uint32(b))
		}
		for bit, size := range []int{4, 4, 100, 4} { // frames, bytes, table of contents, quality
			if flags>>bit&1 != 0 {
				b = b[min(size, len(b)):]
			}
		}
		if len(b) >= 24 && b[0] != 0 && t.frames > 0 { // the name of the encoder: 9 bytes
			t.gapless = true
			t.delay = int(b[21])<<4 | int(b[22])>>4
			t.padding = int(b[22]&15)<<8 | int(b[23])
		}
		return t, true
	}
	return t, false
}

// next reads a frame, valid until the next call. It is io.EOF if the file ends after as many
// frames as it says.
func (f *mp3Frames) next() ([]byte, error) {
	if frame := f.again; frame != nil {
		f.again = nil
		return frame, nil
	}

	if err := f.skip(); err != nil {
		return nil, err
	}

	head, err := f.r.Peek(4)
	if len(head) == 0 && err == io.EOF {
		if f.got < f.want {
			err = ended("MP3", uint64(f.got), uint64(f.want), "frames")
		}
		return nil, err
	}

	if err != nil && err != io.EOF {
		return nil, err
	}

	if !isSync(head) {
		return nil, invalid("the MP3 file is damaged: after %d frames comes something else than a frame", f.got)
	}

	h, err := parseHeader(head)
	if err != nil {
		return nil, err
	}

	if f.first.rate == 0 {
		f.first = h
	}

	if h.rate != f.first.rate {
		return nil, invalid("the MP3 file changes from %d to %d samples per second after %d frames", f.first.rate,
			h.rate, f.got)
	}

	frame := f.buf[:h.size]
	if _, err = io.ReadFull(f.r, frame); err != nil {
		return nil, cutOff("MP3", "in its last frame", err)
	}

	f.got++
	return frame, nil
}

// skip skips what is no sound and allowed between frames: tags (ID3v1 and v2, APE, Lyrics3) and
// zeros.
func (f *mp3Frames) skip() error {
	for {
		head, err := f.r.Peek(32)
		if err != nil && err != io.EOF {
			return err
		}
		switch {
		case len(head) >= 3 && string(head[:3]) == "ID3":
			err = skipID3(f.r)
		case len(head) >= 3 && string(head[:3]) == "TAG":
			err = f.discard(128)
		case len(head) == 32 && string(head[:8]) == "APETAGEX":
			err = f.discard(apeSize(head))
		case len(head) >= 11 && string(head[:11]) == "LYRICSBEGIN":
			err = f.discard(1 << 30) // it is at the end of the file
		case len(head) > 0 && head[0] == 0:
			err = f.discard(1)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// apeSize is how many bytes from the first header or footer of an APE tag on belong to it: the
// size that it gives is without the header.
func apeSize(head []byte) int {
	const isHeader = 1 << 29
	if binary.LittleEndian.Uint32(head[20:])&isHeader == 0 {
		return 32
	}
	return 32 + int(binary.LittleEndian.Uint32(head[12:]))
}

// discard skips n bytes, or what there is of them.
func (f *mp3Frames) discard(n int) error {
	_, err := f.r.Discard(n)
	if err == io.EOF {
		return nil
	}
	return err
}

// skipID3 skips the ID3v2 tags at the start of r, each of 10 bytes and the size that it gives
// (ID3v2.4, 3.1). The size has four bytes of seven bits each (ID3v2.4, section 6.2).
func skipID3(r *bufio.Reader) error {
	for {
		head, _ := r.Peek(10)
		if len(head) < 10 || string(head[:3]) != "ID3" {
			return nil
		}
		size := 10 + (int(head[6]&0x7f)<<21 | int(head[7]&0x7f)<<14 | int(head[8]&0x7f)<<7 | int(head[9]&0x7f))
		const footer = 0x10
		if head[5]&footer != 0 {
			size += 10
		}
		n, err := r.Discard(size)
		if err == io.EOF {
			return invalid("the file is cut off in its ID3 tag: %d of %d bytes", n, size)
		}
		if err != nil {
			return err
		}
	}
}
