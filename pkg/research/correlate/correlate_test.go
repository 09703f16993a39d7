package correlate_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/formats/audio"
	"archivist/pkg/formats/audio/audiotest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/research/analysis"
	"archivist/pkg/research/analysis/shipped"
	"archivist/pkg/research/correlate"
)

// The MP3 files in testdata were made by ffmpeg 9.0.2 with libmp3lame, as the Python package imageio-ffmpeg 0.8.1 has
// it, with 64 kbit/s:
//
//	go test ./pkg/research/correlate -run TestMakeFixtures -ffmpeg PATH
var ffmpeg = flag.String("ffmpeg", "", "program that makes testdata anew")

var sets = flag.Int("sets", 3, "how many generated recordings are searched; 100 take some minutes")

// settings are the defaults.
var settings = correlate.Settings{}

// wav writes a file.
func wav(t testing.TB, rate int, samples []float32) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sound.wav")
	if err := audiotest.WriteWAV(path, rate, samples); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, path string) *correlate.Session {
	t.Helper()
	s, err := correlate.Open(context.Background(), path, settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// score is how well clips were found.
type score struct {
	found, missed, wrong int
	worst                float64 // ms that an offset was wrong by
	kinds                map[string][]float64
}

// count compares hits with the truth. An offset may be wrong by a millisecond.
func (s *score) count(set *audiotest.Set, clip int, hits []analysis.Hit) {
	used := map[int]bool{}
	for _, truth := range set.Truth {
		if truth.Clip != clip {
			continue
		}
		hit := -1
		for i, h := range hits {
			if math.Abs(float64(h.Offset-truth.Nanoseconds(set.Rate))) <= 1e6 && !used[i] {
				hit = i
			}
		}
		if hit < 0 {
			s.missed++
			s.kinds[truth.Kind] = append(s.kinds[truth.Kind], 0)
			continue
		}
		used[hit] = true
		s.found++
		s.kinds[truth.Kind] = append(s.kinds[truth.Kind], hits[hit].Score)
		s.worst = max(s.worst, math.Abs(float64(hits[hit].Offset-truth.Nanoseconds(set.Rate)))/1e6)
	}
	s.wrong += len(hits) - len(used)
}

func (s *score) String() string {
	text := fmt.Sprintf("recall %.4f (%d of %d), precision %.4f (%d wrong), offsets within %.3f ms",
		float64(s.found)/float64(s.found+s.missed), s.found, s.found+s.missed,
		float64(s.found)/float64(max(1, s.found+s.wrong)), s.wrong, s.worst)
	for kind, scores := range s.kinds {
		least, sum := 1.0, 0.0
		for _, v := range scores {
			least, sum = min(least, v), sum+v
		}
		text += fmt.Sprintf("\n\t%-22s mean score %.3f, least %.3f", kind, sum/float64(len(scores)), least)
	}
	return text
}

// search looks for all clips of a set in a recording.
func (s *score) search(t *testing.T, set *audiotest.Set, recording string) {
	session := open(t, recording)
	for i, clip := range set.Clips {
		result, err := session.Clip(context.Background(), wav(t, set.Rate, clip), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range result.Hits {
			if want := float64(len(clip)) / float64(set.Rate) * 1e9; math.Abs(float64(h.Length)-want) > 1e6 {
				t.Errorf("clip %d: length %d, want %.0f", i, h.Length, want)
			}
		}
		s.count(set, i, result.Hits)
	}
}

// Generated recordings: every hidden clip is found, at its time, and nothing else.
func TestFind(t *testing.T) {
	s := &score{kinds: map[string][]float64{}}
	for seed := range uint64(*sets) {
		set := audiotest.NewSet(54+seed, 44100, 40) // a clip of 54 ends in a pause, which is nowhere to be found
		s.search(t, set, wav(t, set.Rate, set.Recording))
	}
	t.Log(s)
	if s.missed > 0 || s.wrong > 0 || s.found < 11**sets {
		t.Errorf("%d missed, %d wrong, %d found", s.missed, s.wrong, s.found)
	}
}

// TestMakeFixtures makes the files of testdata anew. It is a tool, so it is skipped without its program.
func TestMakeFixtures(t *testing.T) {
	if *ffmpeg == "" {
		t.Skip("-ffmpeg names the program that makes them")
	}
	set := audiotest.NewSet(1, 44100, 40)
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, samples := range map[string][]float32{"episode.mp3": set.Recording, "clip3.mp3": set.Clips[3]} {
		out, err := exec.Command(*ffmpeg, "-y", "-loglevel", "error", "-i", wav(t, set.Rate, samples),
			"-fflags", "+bitexact", "-c:a", "libmp3lame", "-b:a", "64k",
			filepath.Join("testdata", name)).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

// With 64 kbit/s, as many podcasts have, all is found as well.
func TestMP3(t *testing.T) {
	s := &score{kinds: map[string][]float64{}}
	set := audiotest.NewSet(1, 44100, 40)
	s.search(t, set, "testdata/episode.mp3")
	result, err := open(t, "testdata/episode.mp3").Clip(context.Background(), "testdata/clip3.mp3", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.count(set, 3, result.Hits)
	t.Log(s)
	if s.missed > 0 || s.wrong > 0 || s.found != len(set.Truth)+2 {
		t.Errorf("%d missed, %d wrong, %d found", s.missed, s.wrong, s.found)
	}
}

// find looks for a clip in a recording, both at 8,000 samples per second.
func find(t *testing.T, recording, clip []float32) analysis.Result {
	t.Helper()
	result, err := open(t, wav(t, 8000, recording)).Clip(context.Background(), wav(t, 8000, clip), nil)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// offsets are those of hits, in milliseconds.
func offsets(r analysis.Result) []int64 {
	out := []int64{}
	for _, h := range r.Hits {
		out = append(out, (h.Offset+500_000)/1_000_000)
	}
	return out
}

func TestCases(t *testing.T) {
	const rate = 8000
	join := slices.Concat[[]float32]
	speech := func(seed uint64, seconds int) []float32 { return audiotest.Speech(seed, rate, seconds*rate) }
	scaled := func(by float32, x []float32) []float32 {
		out := slices.Clone(x)
		for i := range out {
			out[i] *= by
		}
		return out
	}
	short, long, other := speech(1, 2), speech(2, 30), speech(3, 60)
	for _, c := range []struct {
		name            string
		recording, clip []float32
		want            []int64
	}{
		{"the recording itself", other, other, []int64{0}},
		{"the clip is longer than the recording", short, long, []int64{}},
		{"inverted", join(other, scaled(-1, short), other), short, []int64{60_000}},
		{"much quieter than the rest", join(other, scaled(0.001, short), other), scaled(4, short), []int64{60_000}},
		{"one after another", join(short, short, short), short, []int64{0, 2000, 4000}},
		{"after silence", join(make([]float32, 10*rate), short, make([]float32, 10*rate)), short, []int64{10_000}},
		{"longer than what is looked for first", join(other, long), long, []int64{60_000}},
		{"only its first 20 seconds", join(other, long[:20*rate], other), long, []int64{}},
		{"without one second of 30", join(other, long[:10*rate], other[:rate], long[11*rate:]), long, []int64{}},
		{"with a pause", join(other, short, make([]float32, rate), short, other),
			join(short, make([]float32, rate), short), []int64{60_000}},
		{"nowhere", other, short, []int64{}},
		{"noise", join(audiotest.Noise(1, rate), audiotest.Noise(2, rate)), audiotest.Noise(2, rate), []int64{1000}},
		{"a tone among others", join(audiotest.Tone(rate, rate, 300), audiotest.Tone(rate, rate, 440),
			audiotest.Tone(rate, rate, 520)), audiotest.Tone(rate, rate, 440), []int64{1000}},
	} {
		got := offsets(find(t, c.recording, c.clip))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: found at %v ms, want %v", c.name, got, c.want)
		}
	}
}

// Files of other formats and rates are compared as well.
func TestOtherRates(t *testing.T) {
	set := audiotest.NewSet(2, 44100, 40)
	in, err := audio.Open(wav(t, 44100, set.Clips[2]), 48000)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	clip := make([]float32, 10*48000)
	n := 0
	for {
		m, err := in.Read(clip[n:])
		n += m
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "clip.flac")
	if err := audiotest.WriteFLAC(path, 48000, clip[:n]); err != nil {
		t.Fatal(err)
	}
	result, err := open(t, wav(t, set.Rate, set.Recording)).Clip(context.Background(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &score{kinds: map[string][]float64{}}
	s.count(set, 2, result.Hits)
	if s.missed > 0 || s.wrong > 0 {
		t.Error(s)
	}
}

// Of more hits than 1,000 the best are kept, in the order of time.
func TestTruncated(t *testing.T) {
	const rate, count = 8000, 1100
	clip := audiotest.Noise(1, rate/2)
	var recording []float32
	for i := range count {
		recording = append(recording, clip...)
		if i < 200 { // these are less like the clip
			for j, v := range audiotest.Noise(uint64(i+2), len(clip)) {
				recording[i*len(clip)+j] += v / 4
			}
		}
	}
	result := find(t, recording, clip)
	if len(result.Hits) != analysis.MaxHits || !result.Truncated {
		t.Fatalf("%d hits, truncated %v", len(result.Hits), result.Truncated)
	}
	inOrder := slices.IsSortedFunc(result.Hits, func(a, b analysis.Hit) int { return cmp.Compare(a.Offset, b.Offset) })
	good := 0
	for _, h := range result.Hits {
		if h.Score > 0.985 {
			good++
		}
	}
	if good != count-200 || !inOrder {
		t.Errorf("%d of the %d best are kept; in order: %v", good, count-200, inOrder)
	}
}

// A file that can never be analysed is rejected, and it is said which and why. A file that cannot be read now is not.
func TestRejected(t *testing.T) {
	const rate = 8000
	good := wav(t, rate, audiotest.Speech(1, rate, 4*rate))
	damaged := filepath.Join(t.TempDir(), "damaged")
	data, err := os.ReadFile(good)
	if err == nil {
		err = os.WriteFile(damaged, data[:len(data)/2], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	constant := make([]float32, rate)
	for i := range constant {
		constant[i] = 0.7
	}
	session := open(t, good)
	for _, c := range []struct{ name, path, want string }{
		{"silent", wav(t, rate, make([]float32, rate)), "it is silent"},
		{"constant", wav(t, rate, constant), "it is silent"},
		{"short", wav(t, rate, audiotest.Noise(1, rate/3)), "it has 0.33 s of sound; at least 0.5 s are needed"},
		{"empty", wav(t, rate, nil), "it has 0.00 s of sound"},
		{"damaged", damaged, "the WAV file is cut off"},
	} {
		_, ofClip := session.Clip(context.Background(), c.path, nil)
		_, ofEpisode := correlate.Analysis{}.Open(context.Background(), c.path, nil)
		for of, err := range map[string]error{analysis.Clip: ofClip, analysis.Episode: ofEpisode} {
			var rejected *analysis.Rejected
			if !errors.As(err, &rejected) || rejected.Of != of || !strings.Contains(rejected.Reason, c.want) {
				t.Errorf("%s: %v; want that the %s is rejected: %s", c.name, err, of, c.want)
			}
		}
	}
	_, err = session.Clip(context.Background(), "missing", nil)
	var rejected *analysis.Rejected
	if err == nil || errors.As(err, &rejected) {
		t.Errorf("a clip that is not there: %v; want an error that is not its own", err)
	}
}

// A search ends between two blocks when it is cancelled, and leaves nothing on the disk.
func TestCancel(t *testing.T) {
	dir := t.TempDir()
	const rate = 8000
	recording, clip := wav(t, rate, audiotest.Noise(1, 60*rate)), wav(t, rate, audiotest.Noise(2, rate))
	t.Setenv("TMPDIR", dir)
	session := open(t, recording)
	ctx, cancel := context.WithCancel(context.Background())
	var seen []float64
	_, err := session.Clip(ctx, clip, func(part float64) {
		seen = append(seen, part)
		if len(seen) == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || len(seen) != 2 || !(0 < seen[0] && seen[0] < seen[1] && seen[1] < 1) {
		t.Errorf("%v after %v", err, seen)
	}
	if _, err := correlate.Open(ctx, recording, settings); !errors.Is(err, context.Canceled) {
		t.Errorf("decoding: %v", err)
	}
	seen = nil
	_, err = session.Clip(context.Background(), clip, func(part float64) { seen = append(seen, part) })
	if err != nil || seen[len(seen)-1] != 1 {
		t.Errorf("the next search: %v after %v", err, seen)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left on the disk: %v, %v", left, err)
	}
}

func TestSettings(t *testing.T) {
	a := shipped.Analyses[correlate.Name]
	for settings, want := range map[string]string{
		"":                               "",
		"{}":                             "",
		`{"threshold":0.7,"rate":16000}`: "",
		`{"threshold":1}`:                "threshold: found 1; expected 0.2 to 0.99",
		`{"threshold":-0.5}`:             "threshold: found -0.5",
		`{"rate":1000}`:                  "rate: found 1000; expected 4000 to 48000",
		`{"treshold":0.7}`:               "unknown field",
		`{"rate":"8000"}`:                "cannot unmarshal string",
		`{} {}`:                          "more than one JSON value",
	} {
		err := a.Check([]byte(settings))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", settings, err)
		case want != "" && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v; want Invalid with %q", settings, err, want)
		}
	}
}

// TestDuration: a session knows how long its recording is.
func TestDuration(t *testing.T) {
	got := open(t, wav(t, 44100, audiotest.Speech(1, 44100, 3*44100))).Duration()
	if (got - 3*time.Second).Abs() > time.Millisecond {
		t.Error(got)
	}
}
