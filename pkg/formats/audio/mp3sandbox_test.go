package audio

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"

	"archivist/pkg/kernel/fault"
)

// The decoder cannot call anything, and its memory cannot grow. The views of its memory rely on that, too.
func TestSandbox(t *testing.T) {
	ctx := context.Background()
	runtime := wazero.NewRuntime(ctx)
	defer runtime.Close(ctx)
	module, err := runtime.CompileModule(ctx, mp3Module)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(module.ImportedFunctions()) + len(module.ImportedMemories()); n != 0 {
		t.Errorf("it imports %d functions and memories", n)
	}
	for name, memory := range module.ExportedMemories() {
		if most, limited := memory.Max(); !limited || most != memory.Min() || most > 2 {
			t.Errorf("%s has %d to %d (limited: %t) pages of 64 KiB, want 2", name, memory.Min(), most, limited)
		}
	}
}

// FuzzFrames decodes frames of every kind, whose headers are right, with any content. Each is samples, or is damaged.
func FuzzFrames(f *testing.F) {
	for _, header := range []byte{0xe3, 0xf3, 0xfb} { // MPEG 2.5, 2 and 1
		f.Add([]byte{header, 0x44, 0x00, 1, 2, 3}) // stereo
		f.Add([]byte{header, 0x80, 0xc0, 4, 5, 6}) // mono
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 3 {
			return
		}
		head := []byte{0xff, data[0], data[1], data[2]}
		if !isSync(head) {
			return
		}
		h, err := parseHeader(head)
		if err != nil {
			return
		}
		sandbox, err := newMP3Sandbox()
		if err != nil {
			t.Fatal(err)
		}
		defer sandbox.Close()
		frame := make([]byte, h.size)
		for data = data[3:]; len(data) > 0; {
			copy(frame, head)
			data = data[copy(frame[4:], data):]
			checkFrame(t, sandbox, h, frame)
		}
	})
}

func checkFrame(t *testing.T, sandbox *mp3Sandbox, h mp3Header, frame []byte) {
	samples, err := sandbox.decode(frame)
	if err != nil && !fault.Is(err, fault.Invalid) {
		t.Fatalf("%v is not Invalid", err)
	}
	if err == nil && len(samples) != h.samples {
		t.Fatalf("%d samples, want %d", len(samples), h.samples)
	}
	for i, v := range samples {
		if !(v >= -1 && v <= 1) {
			t.Fatalf("sample %d is %v", i, v)
		}
	}
}
