package audio_test

import (
	"os"
	"path/filepath"
	"testing"

	"archivist/pkg/kernel/fault"
)

// The sound of a frame can be stored in frames before it. If they are not there, as in a file that was cut out of
// another, the frame is silence, and what follows is heard when it was.
func TestMissingFrames(t *testing.T) {
	data, err := os.ReadFile("testdata/mono64.mp3")
	if err != nil {
		t.Fatal(err)
	}
	const cut, frame = 10, 1152
	whole := mustDecode(t, write(t, data[mp3Frame(data, 1):]), 44100)
	data = data[mp3Frame(data, 1+cut):]
	if data[4] == 0 {
		t.Fatal("the first frame needs none before it: cut elsewhere")
	}
	got := mustDecode(t, write(t, data), 44100)
	if len(got) != len(whole)-cut*frame {
		t.Fatalf("%d samples, want %d", len(got), len(whole)-cut*frame)
	}
	for i, v := range got {
		if i < frame && v != 0 {
			t.Fatalf("sample %d of a frame that is not whole is %v, want silence", i, v)
		}
		if want := whole[cut*frame+i]; i >= 4*frame && v != want {
			t.Fatalf("sample %d is %v, in the whole file %v", i, v, want)
		}
	}
}

// FuzzMP3 reads any bytes: to their end, or they are refused.
func FuzzMP3(f *testing.F) {
	names, err := filepath.Glob("testdata/*.mp3")
	if err != nil || len(names) == 0 {
		f.Fatal(names, err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:2000])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, info, err := decode(write(t, data), 44100)
		if err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%v is not Invalid", err)
		}
		if err == nil && info.Format != "MP3" {
			return
		}
		// The shortest frame, of MPEG 2 at 24,000 samples per second, has 24 bytes; rates grow from 8,000 at most.
		if most := (len(data)/24 + 1) * 1152 * 6; len(got) > most {
			t.Errorf("%+v: %d samples of %d bytes", info, len(got), len(data))
		}
		for i, v := range got {
			if !(v >= -4 && v <= 4) { // resampling overshoots
				t.Fatalf("sample %d is %v", i, v)
			}
		}
	})
}
