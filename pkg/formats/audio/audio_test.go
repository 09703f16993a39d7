package audio_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"io"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/formats/audio"
	"archivist/pkg/formats/audio/audiotest"
	"archivist/pkg/kernel/fault"
)

var damages = flag.Int("damages", 200, "how many damaged files are read")

// decode reads a whole file.
func decode(path string, rate int) ([]float32, audio.Info, error) {
	s, err := audio.Open(path, rate)
	if err != nil {
		return nil, audio.Info{}, err
	}
	defer s.Close()
	var out []float32
	buf := make([]float32, 1000) // divides no block of any format
	for {
		n, err := s.Read(buf)
		out = append(out, buf[:n]...)
		if err == io.EOF {
			return out, s.Info(), nil
		}
		if err != nil {
			return out, s.Info(), err
		}
	}
}

func mustDecode(t *testing.T, path string, rate int) []float32 {
	t.Helper()
	out, _, err := decode(path, rate)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// align is by how many samples b must be moved to the left to be most like a, and how like they are then.
func align(a, b []float32, most int) (lag int, like float64) {
	like = -1
	for l := -most; l <= most; l++ {
		var ab, aa, bb float64
		for i := max(0, -l); i < len(a) && i+l < len(b); i++ {
			x, y := float64(a[i]), float64(b[i+l])
			ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
		}
		if v := ab / math.Sqrt(aa*bb); v > like {
			lag, like = l, v
		}
	}
	return lag, like
}

// Every file gives the sound that it was made from, at the time at which it is there, and as long as it was.
func TestFormats(t *testing.T) {
	want := fixture()
	half := want[:len(want)/3]
	for _, c := range []struct {
		name     string
		info     audio.Info
		original []float32
		late     int // a file without the LAME tag does not say how late its encoder was
		like     float64
	}{
		{"mono16.flac", audio.Info{Format: "FLAC", Rate: 44100, Channels: 1}, want, 0, 0.9999},
		{"stereo24.flac", audio.Info{Format: "FLAC", Rate: 44100, Channels: 2}, half, 0, 0.9999},
		{"mono64.mp3", audio.Info{Format: "MP3", Rate: 44100, Channels: 1}, want, 0, 0.97},
		{"joint128.mp3", audio.Info{Format: "MP3", Rate: 44100, Channels: 2}, want, 0, 0.97},
		{"vbr48000.mp3", audio.Info{Format: "MP3", Rate: 48000, Channels: 1}, want, 0, 0.97},
		{"tagged.mp3", audio.Info{Format: "MP3", Rate: 44100, Channels: 1}, want, 0, 0.97},
		{"untagged.mp3", audio.Info{Format: "MP3", Rate: 44100, Channels: 1}, want, 1105, 0.97},
		{"mpeg2.mp3", audio.Info{Format: "MP3", Rate: 24000, Channels: 1}, want, 0, 0.95},
		{"padded.mp3", audio.Info{Format: "MP3", Rate: 22050, Channels: 1}, want, 0, 0.95},
		{"padded96.mp3", audio.Info{Format: "MP3", Rate: 22050, Channels: 2}, want, 0, 0.95},
		{"mpeg25.mp3", audio.Info{Format: "MP3", Rate: 11025, Channels: 1}, half, 0, 0.9},
		{"vbr22050.mp3", audio.Info{Format: "MP3", Rate: 22050, Channels: 1}, want, 0, 0.95},
	} {
		got, info, err := decode(filepath.Join("testdata", c.name), 44100)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		lag, like := align(c.original, got, 1500)
		t.Logf("%s: %d samples late, correlation %.4f", c.name, lag, like)
		if info != c.info || lag != c.late || like < c.like {
			t.Errorf("%s: %+v, %d samples late, correlation %.4f; want %+v, %d, %.4f", c.name, info, lag, like, c.info,
				c.late, c.like)
		}
		longer := len(got) - len(c.original)
		if longer < -600 || c.late == 0 && longer > 2 || longer > 3000 {
			t.Errorf("%s: %d samples longer than the original", c.name, longer)
		}
	}
}

// wavFile makes a WAV file by hand.
func wavFile(id string, code, channels, bits int, extensible bool, samples []byte) []byte {
	var fmtChunk []any
	tag := uint16(code)
	if extensible {
		tag = 0xfffe
	}
	fmtChunk = append(fmtChunk, tag, uint16(channels), uint32(44100), uint32(44100*channels*bits/8),
		uint16(channels*bits/8), uint16(bits))
	if extensible {
		fmtChunk = append(fmtChunk, uint16(22), uint16(bits), uint32(0), uint16(code),
			[]byte("\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"))
	}
	var f, out bytes.Buffer
	for _, v := range fmtChunk {
		binary.Write(&f, binary.LittleEndian, v)
	}
	size := uint32(len(samples))
	out.WriteString(id + "????WAVE")
	if id == "RF64" {
		out.WriteString("ds64\x1c\x00\x00\x00")
		binary.Write(&out, binary.LittleEndian, []uint64{0, uint64(size), 0})
		out.WriteString("\x00\x00\x00\x00")
		size = math.MaxUint32
	}
	out.WriteString("LIST\x03\x00\x00\x00odd\x00fmt ")
	binary.Write(&out, binary.LittleEndian, uint32(f.Len()))
	out.Write(f.Bytes())
	out.WriteString("data")
	binary.Write(&out, binary.LittleEndian, size)
	out.Write(samples)
	out.WriteString("LIST\x00\x00\x00\x00")
	return out.Bytes()
}

// pack writes samples of a coding; the second channel is silent.
func pack(code, channels, bits int, samples []float64) []byte {
	var out []byte
	for _, v := range samples {
		for c := range channels {
			if c > 0 {
				v = 0
			}
			switch {
			case code == 3 && bits == 32:
				out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v)))
			case code == 3:
				out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
			case bits == 8:
				out = append(out, byte(v*128+128))
			default:
				n := uint32(int32(v * (1 << 31)))
				out = append(out, binary.LittleEndian.AppendUint32(nil, n)[4-bits/8:]...)
			}
		}
	}
	return out
}

func write(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "wrong.txt") // the name says nothing
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWAV(t *testing.T) {
	samples := []float64{0, 0.5, -0.5, 0.25, -1, 0.984375}
	for _, c := range []struct {
		id                   string
		code, channels, bits int
		extensible           bool
	}{
		{"RIFF", 1, 1, 8, false}, {"RIFF", 1, 1, 16, false}, {"RIFF", 1, 2, 24, false}, {"RIFF", 1, 1, 32, false},
		{"RIFF", 3, 1, 32, false}, {"RIFF", 3, 2, 64, false}, {"RIFF", 1, 2, 24, true}, {"RIFF", 3, 1, 32, true},
		{"RF64", 1, 1, 16, false}, {"RF64", 1, 2, 24, true},
	} {
		data := wavFile(c.id, c.code, c.channels, c.bits, c.extensible, pack(c.code, c.channels, c.bits, samples))
		got, info, err := decode(write(t, data), 44100)
		if err != nil || info.Channels != c.channels || len(got) != len(samples) {
			t.Errorf("%+v: %d samples, %+v, %v", c, len(got), info, err)
			continue
		}
		for i, v := range samples {
			if math.Abs(float64(got[i])-v/float64(c.channels)) > 1e-6 {
				t.Errorf("%+v: sample %d is %v, want %v", c, i, got[i], v/float64(c.channels))
			}
		}
	}
}

// A file that no recording can be read from says why; that is never the fault of this program or of the disk.
func TestBadFiles(t *testing.T) {
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	wav := wavFile("RIFF", 1, 1, 16, false, make([]byte, 2000))
	cut := func(data []byte, n int) []byte { return data[:len(data)-n] }
	flip := func(data []byte, at int) []byte {
		data = bytes.Clone(data)
		data[at] ^= 0xff
		return data
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "the file is empty"},
		{"a page", []byte("<!DOCTYPE html><title>Not found</title>"), "text/html"},
		{"zeros", make([]byte, 5000), "not WAV, FLAC or MP3"},
		{"Ogg", read("other.ogg"), "application/ogg"},
		{"MP4", read("other.m4a"), "by its first bytes it is"},
		{"layer II", read("layer2.mp2"), "layer 2"},
		{"WAV cut in its samples", cut(wav, 108), "the WAV file is cut off: 1900 of 2000 bytes of samples"},
		{"WAV cut in its header", wav[:40], "cut off in its header"},
		{"WAV without samples", wav[:50], "cut off before its samples"},
		{"WAV of another coding", wavFile("RIFF", 0x55, 1, 16, false, make([]byte, 20)), "coding 0x0055"},
		{"WAV of 12 bits", wavFile("RIFF", 1, 1, 40, false, make([]byte, 20)), "samples of 40 bits"},
		{"WAV of no channels", wavFile("RIFF", 1, 0, 16, false, make([]byte, 20)), "0 channels"},
		{"WAV not a number", wavFile("RIFF", 3, 1, 32, false, bytes.Repeat([]byte{0xff}, 40)), "not a number"},
		{"FLAC cut", cut(read("mono16.flac"), 20_000), "the FLAC file is cut off"},
		{"FLAC cut between frames", read("mono16.flac")[:flacFrame(read("mono16.flac"), 5)], "of 66150 samples"},
		{"FLAC header only", read("mono16.flac")[:20], "cut off"},
		{"FLAC damaged", flip(read("mono16.flac"), 30_000), "the FLAC file is damaged"},
		{"MP3 cut in a frame", cut(read("mono64.mp3"), 100), "the MP3 file is cut off in its last frame"},
		{"MP3 cut between frames", read("mono64.mp3")[:mp3Frame(read("mono64.mp3"), 21)], "20 of 59 frames"},
		{"MP3 damaged", flip(read("mono64.mp3"), mp3Frame(read("mono64.mp3"), 20)), "something else than a frame"},
		{"MP3 damaged in a frame", spoil(read("mono64.mp3")), "a frame cannot be decoded"},
		{"ID3 only", []byte("ID3\x03\x00\x00\x00\x00\x00\x7f"), "cut off in its ID3 tag"},
	} {
		_, _, err := decode(write(t, c.data), 8000)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want Invalid with %q", c.name, err, c.want)
		}
	}
	if _, _, err := decode("testdata", 8000); err == nil || fault.Of(err) != "" {
		t.Errorf("a file that cannot be read: %v; want the error of the disk", err)
	}
	if _, _, err := decode("missing.wav", 8000); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// flacFrame is where frame n of a FLAC file of fixed blocks begins.
func flacFrame(data []byte, n int) int {
	for at := 4; ; at++ {
		if data[at] == 0xff && data[at+1] == 0xf8 && data[at+4] == byte(n) {
			return at
		}
	}
}

// mp3Frame is where frame n of an MP3 file at 44,100 Hz with 64 kbit/s begins.
func mp3Frame(data []byte, n int) int {
	at := bytes.Index(data, []byte{0xff, 0xfb})
	for range n {
		at += 208 + int(data[at+2]>>1&1)
	}
	return at
}

// spoil makes the number of values in a frame of an MP3 file like that larger than there can be.
func spoil(data []byte) []byte {
	at := mp3Frame(data, 20)
	data[at+7], data[at+8] = data[at+7]|3, 0xff
	return data
}

// What is no sound is no reason to refuse a file: tags before, between and after the frames, and zeros.
func TestTags(t *testing.T) {
	plain, err := os.ReadFile("testdata/mono64.mp3")
	if err != nil {
		t.Fatal(err)
	}
	plain = plain[mp3Frame(plain, 0):]
	want := mustDecode(t, write(t, plain), 44100)
	id3 := []byte("ID3\x04\x00\x00\x00\x00\x01\x00" + strings.Repeat("x", 128))
	ape := []byte("APETAGEX\xd0\x07\x00\x00\x24\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xa0" +
		strings.Repeat("\x00", 8))
	ape = append(ape, strings.Repeat("y", 36)...)
	at := mp3Frame(plain, 10)
	tagged := bytes.Join([][]byte{id3, id3, plain[:at], make([]byte, 9), id3, plain[at:], ape,
		[]byte("TAG" + strings.Repeat("z", 125))}, nil)
	got := mustDecode(t, write(t, tagged), 44100)
	if len(got) != len(want) {
		t.Fatalf("%d samples, %d without tags", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("sample %d is %v, without tags %v", i, got[i], want[i])
		}
	}
}

// Files that were put together, as services do with advertisements, are heard to their end.
func TestJoined(t *testing.T) {
	one, err := os.ReadFile("testdata/mono64.mp3")
	if err != nil {
		t.Fatal(err)
	}
	want, rate := mustDecode(t, "testdata/mono64.mp3", 44100), 44100
	got := mustDecode(t, write(t, append(bytes.Clone(one), one...)), rate)
	for i, v := range want {
		if got[i] != v {
			t.Fatalf("sample %d is %v, alone %v", i, got[i], v)
		}
	}
	// Between the two are the padding of the first, the frame that describes the second, and its delay.
	lag, like := align(want, got[len(want):], 5000)
	if lag < 1152+1105 || lag > 1152+1105+1152 || like < 0.99 {
		t.Errorf("the second file begins %d samples after the first, correlation %.3f", lag, like)
	}
}

// A tone below the new Nyquist frequency keeps its phase and level; one above it vanishes.
func TestResampler(t *testing.T) {
	for _, c := range []struct{ from, to int }{{44100, 8000}, {48000, 8000}, {8000, 44100}, {22050, 8000},
		{11025, 8000}, {44100, 16000}, {96000, 8000}, {32000, 11025}} {
		nyquist := float64(min(c.from, c.to)) / 2
		for _, share := range []float64{0.02, 0.5, 0.85} {
			in := audiotest.Tone(c.from, c.from/2, share*nyquist)
			got := resample(t, in, c.from, c.to)
			if want := (len(in)*c.to + c.from - 1) / c.from; len(got) != want {
				t.Errorf("%d to %d: %d samples, want %d", c.from, c.to, len(got), want)
			}
			if e := difference(got, audiotest.Tone(c.to, len(got), share*nyquist)); e > -70 {
				t.Errorf("%d to %d: at %.2f of the Nyquist frequency the error is %.1f dB", c.from, c.to, share, e)
			}
		}
		if c.from > c.to {
			// What lies as far above the Nyquist frequency as the pass band ends below it is folded to that end.
			got := resample(t, audiotest.Tone(c.from, c.from/2, 1.12*nyquist), c.from, c.to)
			if e := difference(got, make([]float32, len(got))); e > -75 {
				t.Errorf("%d to %d: what is above the Nyquist frequency is left with %.1f dB", c.from, c.to, e)
			}
		}
	}
}

// resample writes a file of floating point numbers, which round nothing, and reads it at another rate.
func resample(t *testing.T, in []float32, from, to int) []float32 {
	t.Helper()
	wide := make([]float64, len(in))
	for i, v := range in {
		wide[i] = float64(v)
	}
	data := wavFile("RIFF", 3, 1, 64, false, pack(3, 1, 64, wide))
	binary.LittleEndian.PutUint32(data[bytes.Index(data, []byte("fmt "))+12:], uint32(from))
	return mustDecode(t, write(t, data), to)
}

// difference is the RMS of a - b, without the ends, in dB of a tone's.
func difference(a, b []float32) float64 {
	var d []float32
	for i := len(a) / 10; i < len(a)*9/10; i++ {
		d = append(d, a[i]-b[i])
	}
	return 20 * math.Log10(audiotest.RMS(d)/(0.5/math.Sqrt2)+1e-12)
}

// Whatever is in a file, it is read to its end or refused. The decoders' own panics are errors of the file.
func TestDamage(t *testing.T) {
	names := slices.Sorted(maps.Keys(fixtures))
	r := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range *damages {
		data, err := os.ReadFile(filepath.Join("testdata", names[r.IntN(len(names))]))
		if err != nil {
			t.Fatal(err)
		}
		data = data[:min(len(data), 3000)]
		for range 1 + r.IntN(5) {
			data[r.IntN(len(data))] = byte(r.Uint32())
		}
		_, _, err = decode(write(t, data), 8000)
		if err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%v is not Invalid", err)
		}
		if err != nil {
			refused++
		}
	}
	if refused < *damages*9/10 {
		t.Errorf("%d of %d cut and damaged files are refused", refused, *damages)
	}
}
