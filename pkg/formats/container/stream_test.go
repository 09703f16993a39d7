package container

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os/exec"
	"testing"
)

// sample is text with repetitions near and far, and parts that do not compress.
func sample(r *rand.Rand, n int) []byte {
	var all []byte
	for len(all) < n {
		switch r.IntN(4) {
		case 0:
			part := make([]byte, r.IntN(3000))
			for i := range part {
				part[i] = byte(r.Uint32())
			}
			all = append(all, part...)
		case 1:
			all = append(all, bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(5000))...)
		case 2:
			for range r.IntN(400) {
				all = append(all, "the archive keeps "[r.IntN(10):]...)
			}
		default:
			if len(all) > 0 {
				from := r.IntN(len(all))
				all = append(all, all[from:min(len(all), from+r.IntN(1000))]...)
			}
		}
	}
	return all[:n]
}

// readInSteps reads a stream in reads of several sizes, and continues in a new one after some of them.
func readInSteps(t *testing.T, r *rand.Rand, open func() stream) ([]byte, error) {
	t.Helper()
	s, all := open(), []byte{}
	for {
		p := make([]byte, 1+r.IntN(1<<(4+r.IntN(14))))
		n, err := s.Read(p)
		all = append(all, p[:n]...)
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		if r.IntN(3) > 0 {
			continue
		}
		state, err := s.save()
		if err != nil {
			continue // it has failed behind what was read
		}
		s = open()
		if err := s.resume(json.RawMessage(bytes.Clone(state))); err != nil {
			t.Fatal(err)
		}
	}
}

func of(data []byte) *input { return newInput(bytes.NewReader(data), 0, int64(len(data))) }

func TestInflate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 300 {
		want := sample(r, r.IntN(200_000))
		var packed bytes.Buffer
		level := r.IntN(12) - 2 // with stored blocks, fixed codes, and Huffman only
		w, err := flate.NewWriter(&packed, level)
		if err != nil {
			t.Fatal(err)
		}
		for rest := want; len(rest) > 0; {
			n := min(len(rest), 1+r.IntN(30_000))
			_, _ = w.Write(rest[:n])
			rest = rest[n:]
			if r.IntN(3) == 0 {
				_ = w.Flush()
			}
		}
		_ = w.Close()

		got, err := readInSteps(t, r, func() stream { return deflated{newInflater(of(packed.Bytes()))} })
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d: level %d: %d bytes, %v; expected %d", i, level, len(got), err, len(want))
		}
	}
}

// FuzzInflate: what compress/flate accepts is accepted with the same result, and what it refuses is refused.
func FuzzInflate(f *testing.F) {
	r := rand.New(rand.NewPCG(2, 2))
	for level := -2; level <= 9; level++ {
		var packed bytes.Buffer
		w, _ := flate.NewWriter(&packed, level)
		_, _ = w.Write(sample(r, 3000))
		_ = w.Close()
		f.Add(packed.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) { compareInflate(t, data) })
}

func compareInflate(t *testing.T, data []byte) {
	t.Helper()
	const most = 1 << 20
	want, wantErr := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), most))
	got, err := io.ReadAll(io.LimitReader(newInflater(of(data)), most))
	if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
		t.Fatalf("%x: %d bytes, %v; compress/flate: %d bytes, %v", data, len(got), err, len(want), wantErr)
	}
	if bad := new(corruptError); err != nil && !errors.As(err, &bad) {
		t.Fatalf("%x: %v is not told as damage", data, err)
	}
}

// TestDamagedInflate: damaged data is judged as compress/flate does.
func TestDamagedInflate(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 3000 {
		var packed bytes.Buffer
		w, _ := flate.NewWriter(&packed, r.IntN(12)-2)
		_, _ = w.Write(sample(r, r.IntN(3000)))
		_ = w.Close()
		data := packed.Bytes()
		for range 1 + r.IntN(3) {
			data[r.IntN(len(data))] ^= 1 << r.IntN(8)
		}
		compareInflate(t, data[:r.IntN(len(data)+1)])
	}
}

func TestGunzip(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 100 {
		var packed bytes.Buffer
		want := []byte{}
		whole := 0 // of the first member
		for range 1 + r.IntN(3) {
			part := sample(r, r.IntN(50_000))
			w := gzip.NewWriter(&packed)
			w.Name, w.Comment, w.Extra = "a.tar", "made here", []byte("extra")
			_, _ = w.Write(part)
			_ = w.Close()
			want = append(want, part...)
			if whole == 0 {
				whole = packed.Len()
			}
		}
		packed.Write(make([]byte, r.IntN(3)*100))

		got, err := readInSteps(t, r, func() stream { return &gunzip{in: of(packed.Bytes())} })
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, %v; expected %d", len(got), err, len(want))
		}

		cut := packed.Bytes()[:r.IntN(whole)]
		if _, err := io.ReadAll(&gunzip{in: of(cut)}); err == nil {
			t.Fatal("a gzip file that was cut is accepted")
		}

		data := packed.Bytes()
		if _, err := io.ReadAll(&gunzip{in: of(append(data[:len(data):len(data)], 'x'))}); err == nil {
			t.Fatal("what is behind the data is passed over")
		}
	}
}

// TestBunzip has files of several blocks by the reference program; marks are also compared in few of their bits, so
// that there are false ones in the middle of blocks.
func TestBunzip(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for i := range 4 {
		var packed, want []byte
		for range 1 + r.IntN(2) {
			part := sample(r, r.IntN(250_000))
			out := program(t, part, "import bz2, sys\n"+
				"sys.stdout.buffer.write(bz2.compress(sys.stdin.buffer.read(), 1))")
			packed, want = append(packed, out...), append(want, part...)
		}

		open := func() stream {
			s := newBunzip(of(packed))
			if i%2 == 1 {
				s.marks = 1<<16 - 1
			}
			return s
		}
		got, err := readInSteps(t, r, open)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d: %d bytes, %v; expected %d", i, len(got), err, len(want))
		}

		damaged := bytes.Clone(packed)
		damaged[4+r.IntN(len(damaged)-4)] ^= 1 << r.IntN(8)
		if got, err := io.ReadAll(newBunzip(of(damaged))); err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%d: damage is not found", i)
		}
		if _, err := io.ReadAll(newBunzip(of(packed[:r.IntN(len(packed)-1)]))); err == nil && len(want) > 0 {
			t.Fatalf("%d: a file that was cut is accepted", i)
		}
	}
}

// program runs a program of Python on some bytes.
func program(t *testing.T, in []byte, text string) []byte {
	t.Helper()
	cmd := exec.Command("python3", "-c", text)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// BenchmarkInflate compares with compress/flate.
func BenchmarkInflate(b *testing.B) {
	want := sample(rand.New(rand.NewPCG(6, 6)), 16<<20)
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, 6)
	_, _ = w.Write(want)
	_ = w.Close()
	for name, open := range map[string]func() io.Reader{
		"ours":   func() io.Reader { return newInflater(of(packed.Bytes())) },
		"stdlib": func() io.Reader { return flate.NewReader(bytes.NewReader(packed.Bytes())) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(want)))
			buf := make([]byte, 1<<20)
			for b.Loop() {
				_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{open()}, buf)
			}
		})
	}
}
