package audio

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// mp3Module decodes frames. It is C, compiled to WebAssembly (wasm/mp3.c): it imports nothing,
// and the 128 KiB that it starts with are all the memory that it ever has. So the worst that a
// file can do there is to spoil its own samples.
//
//go:generate sh wasm/build.sh
//go:embed wasm/mp3.wasm
var mp3Module []byte

// What the module has room for: the bytes and the samples of the longest frame.
const (
	mostFrame   = 1441
	mostSamples = 1152
)

// sandboxes gives the function that starts one. It compiles the module, once, which takes 10 to
// 40 ms.
var sandboxes = sync.OnceValues(func() (func() (api.Module, error), error) {
	ctx := context.Background()
	runtime := wazero.NewRuntime(ctx)
	compiled, err := runtime.CompileModule(ctx, mp3Module)
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize")
	return func() (api.Module, error) { return runtime.InstantiateModule(ctx, compiled, config) }, err
})

// mp3Sandbox decodes the frames of one file, each after those before it. Layer III keeps bits
// of a frame in the ones before it, so a file needs one of its own.
type mp3Sandbox struct {
	module  api.Module
	call    api.Function
	in, out []byte // views of the module's memory: of the frame, and of its samples
	samples [mostSamples]float32
}

// newMP3Sandbox starts one. The caller closes it.
func newMP3Sandbox() (*mp3Sandbox, error) {
	start, err := sandboxes()
	if err != nil {
		return nil, err
	}
	s := &mp3Sandbox{}
	if s.module, err = start(); err != nil {
		return nil, err
	}
	s.call = s.module.ExportedFunction("decode")
	if s.in, err = s.view("frame", mostFrame); err != nil {
		return s, err
	}
	s.out, err = s.view("samples", 4*mostSamples)
	return s, err
}

// view is the part of the memory that begins where the function of that name says. The memory
// never grows, so the view stays valid.
func (s *mp3Sandbox) view(name string, size uint32) ([]byte, error) {
	at, err := s.module.ExportedFunction(name).Call(context.Background())
	if err != nil {
		return nil, err
	}
	part, ok := s.module.Memory().Read(uint32(at[0]), size)
	if !ok {
		return nil, fmt.Errorf("audio: the memory of the decoder of MP3 has no %s", name)
	}
	return part, nil
}

// decode gives the mean of the channels of a frame of at most mostFrame bytes. It is valid
// until the next call. What the module returns is checked, because a file may have made it
// wrong.
func (s *mp3Sandbox) decode(frame []byte) ([]float32, error) {
	size := copy(s.in, frame)
	result, err := s.call.Call(context.Background(), uint64(size))
	if err != nil || result[0] == 0 || result[0] > mostSamples {
		return nil, invalid("the MP3 file is damaged: a frame cannot be decoded")
	}
	samples := s.samples[:result[0]]
	for i := range samples {
		samples[i] = math.Float32frombits(binary.LittleEndian.Uint32(s.out[4*i:]))
	}
	return samples, nil
}

// Close frees the memory.
func (s *mp3Sandbox) Close() error { return s.module.Close(context.Background()) }
