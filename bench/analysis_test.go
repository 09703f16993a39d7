package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"archivist/pkg/formats/audio"
	"archivist/pkg/formats/audio/audiotest"
	"archivist/pkg/research/analysis"
	"archivist/pkg/research/correlate"
)

var (
	hours  = flag.Float64("hours", 0.02, "how long the recording is in which TestAnalysis finds clips")
	python = flag.String("python", "", "a Python with numpy 2.4.6 and scipy 1.17.1, which does the same for comparison")
)

// analysisRate is the rate of the recording and of its comparison, so that both sides have the same samples.
const analysisRate = 8000

// clipSeconds are the lengths of the clips.
var clipSeconds = []int{1, 4, 10, 60}

// step is what a program has done: which clip it found where, and what it took.
type step struct {
	What    string  `json:"what"`
	CPU     float64 `json:"cpu"` // seconds
	Offsets []int64 `json:"offsets"`
	Memory  int64   `json:"memory"` // KiB that the process had at most so far
}

// TestAnalysis finds clips in a long recording on one core, and with -python does the same by numpy and scipy.
func TestAnalysis(t *testing.T) {
	dir := t.TempDir()
	want := writeRecording(t, dir)
	seconds := *hours * 3600
	report := func(name string, cmd *exec.Cmd) {
		for _, s := range measure(t, cmd) {
			t.Logf("%s: %s: %.1f s of CPU, %.0fx real time, %d MiB at most", name, s.What, s.CPU, seconds/s.CPU,
				s.Memory>>10)
			if at, ok := want[s.What]; ok && !within(s.Offsets, at) {
				t.Errorf("%s: %s: found at %v, want %v", name, s.What, s.Offsets, at)
			}
		}
	}
	self := exec.Command(os.Args[0], "-test.run", "^TestAnalysisAlone$")
	self.Env = append(os.Environ(), "ANALYSIS="+dir, "GOMAXPROCS=1")
	report("correlate", self)
	if *python != "" {
		for _, method := range []string{"fft", "oaconvolve"} {
			report("scipy, "+method, exec.Command(*python, "correlate.py", dir, method))
		}
	}
}

// within says whether two lists of nanoseconds are the same within a millisecond.
func within(got, want []int64) bool {
	return slices.EqualFunc(got, want, func(a, b int64) bool { return max(a-b, b-a) <= 1_000_000 })
}

// writeRecording writes the recording as WAV, and the clips, each hidden ten times beneath as much other speech. It
// returns when they begin. A second recording as long is of MP3.
func writeRecording(t *testing.T, dir string) map[string][]int64 {
	total := int(*hours * 3600 * analysisRate)
	clips, want := make([][]float32, len(clipSeconds)), map[string][]int64{}
	for i, s := range clipSeconds {
		clips[i] = audiotest.Speech(uint64(1000+i), analysisRate, s*analysisRate)
		name := fmt.Sprintf("clip%02d.wav", s)
		if err := audiotest.WriteWAV(filepath.Join(dir, name), analysisRate, clips[i]); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(filepath.Join(dir, "recording.wav"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := audiotest.WAVHeader(f, analysisRate, total); err != nil {
		t.Fatal(err)
	}
	// A tenth at a time, each with all clips.
	part := total / 10
	for n := range 10 {
		samples := audiotest.Speech(uint64(n+1), analysisRate, part)
		for i, c := range clips {
			at := i*part/len(clips) + 1000 + n*7
			if at+len(c) > part {
				continue
			}
			for j, v := range c {
				samples[at+j] += v
			}
			name := fmt.Sprintf("clip%02d.wav", clipSeconds[i])
			want[name] = append(want[name], int64(n*part+at)*1e9/analysisRate)
		}
		if err := writeSamples(f, samples); err != nil {
			t.Fatal(err)
		}
	}
	writeMP3(t, filepath.Join(dir, "recording.mp3"))
	return want
}

func writeSamples(f io.Writer, samples []float32) error {
	w := bufio.NewWriter(f)
	for _, v := range samples {
		if err := binary.Write(w, binary.LittleEndian, int16(max(-1, min(v/2, 1))*32767)); err != nil {
			return err
		}
	}
	return w.Flush()
}

// writeMP3 repeats a file of 40 s with 64 kbit/s at 44,100 samples per second.
func writeMP3(t *testing.T, path string) {
	data, err := os.ReadFile(filepath.Join("..", "pkg", "research", "correlate", "testdata", "episode.mp3"))
	if err != nil {
		t.Fatal(err)
	}
	data = data[bytes.Index(data, []byte{0xff, 0xfb}):]
	data = data[bytes.Index(data[4:], []byte{0xff, 0xfb})+4:] // without the frame that says how long it is
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range max(1, int(*hours*3600/40)) {
		if _, err := f.Write(data); err != nil {
			t.Fatal(err)
		}
	}
}

// measure runs a program that prints a step per line.
func measure(t *testing.T, cmd *exec.Cmd) (steps []step) {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var s step
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, s)
	}
	return steps
}

// TestAnalysisAlone is the process whose memory TestAnalysis measures.
func TestAnalysisAlone(t *testing.T) {
	dir := os.Getenv("ANALYSIS")
	if dir == "" {
		t.Skip("TestAnalysis runs it in a process of its own")
	}
	ctx := context.Background()
	var session analysis.Session
	timed := func(what string, do func() ([]int64, error)) {
		before := cpu()
		offsets, err := do()
		if err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(step{what, (cpu() - before).Seconds(), offsets, memory(t)})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(string(line))
	}
	timed("decoding WAV", func() (_ []int64, err error) {
		session, err = correlate.Analysis{}.Open(ctx, filepath.Join(dir, "recording.wav"), nil)
		return nil, err
	})
	defer session.Close()
	for _, s := range clipSeconds {
		name := fmt.Sprintf("clip%02d.wav", s)
		timed(name, func() (offsets []int64, err error) {
			result, err := session.Clip(ctx, filepath.Join(dir, name), nil)
			for _, h := range result.Hits {
				offsets = append(offsets, h.Offset)
			}
			return offsets, err
		})
	}
	timed("decoding MP3 at 44,100 to 8,000", func() ([]int64, error) {
		return nil, decodeAll(filepath.Join(dir, "recording.mp3"))
	})
}

func decodeAll(path string) error {
	s, err := audio.Open(path, analysisRate)
	if err != nil {
		return err
	}
	defer s.Close()
	buf := make([]float32, 1<<14)
	for {
		if _, err := s.Read(buf); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// memory is how many KiB this process had at most. What the system tells the parent includes the parent's own.
func memory(t *testing.T) (kib int64) {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(data), "VmHWM:")
	if _, err := fmt.Sscan(after, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}

// cpu is the time that this process has computed.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
