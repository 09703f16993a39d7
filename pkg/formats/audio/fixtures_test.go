package audio_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"archivist/pkg/formats/audio/audiotest"
)

// The files in testdata were made by ffmpeg 9.0.2 with libmp3lame, as the Python package imageio-ffmpeg 0.8.1 has it:
//
//	go test ./pkg/formats/audio -run TestMakeFixtures -ffmpeg PATH
var ffmpeg = flag.String("ffmpeg", "", "program that makes testdata anew")

// fixtures are the files of testdata with the arguments that made them from fixture() at 44,100 Hz. The sound of the
// two channels is the same, so that their mean is too.
var fixtures = map[string]string{
	"mono64.mp3":    "-c:a libmp3lame -b:a 64k",
	"joint128.mp3":  "-ac 2 -c:a libmp3lame -b:a 128k",
	"vbr48000.mp3":  "-ar 48000 -c:a libmp3lame -q:a 4",
	"tagged.mp3":    "-c:a libmp3lame -b:a 64k -id3v2_version 3 -write_id3v1 1 -metadata title=Fixture",
	"untagged.mp3":  "-c:a libmp3lame -b:a 64k -write_xing 0 -id3v2_version 0",
	"mpeg2.mp3":     "-ar 24000 -c:a libmp3lame -b:a 48k",
	"padded.mp3":    "-ar 22050 -c:a libmp3lame -b:a 32k",
	"padded96.mp3":  "-ar 22050 -ac 2 -c:a libmp3lame -b:a 96k",
	"vbr22050.mp3":  "-ar 22050 -c:a libmp3lame -q:a 6",
	"mpeg25.mp3":    "-ar 11025 -c:a libmp3lame -b:a 32k -t 0.5",
	"layer2.mp2":    "-c:a mp2 -b:a 64k -t 0.5",
	"stereo24.flac": "-ac 2 -c:a flac -sample_fmt s32 -bits_per_raw_sample 24 -t 0.5",
	"mono16.flac":   "-c:a flac -sample_fmt s16",
	"other.ogg":     "-c:a vorbis -strict -2 -ac 2 -t 0.2",
	"other.m4a":     "-c:a aac -t 0.2",
}

// fixture is what the files of testdata sound like.
func fixture() []float32 { return audiotest.Speech(7, 44100, 44100*3/2) }

// TestMakeFixtures makes the files of testdata anew. It is a tool, so it is skipped without its program.
func TestMakeFixtures(t *testing.T) {
	if *ffmpeg == "" {
		t.Skip("-ffmpeg names the program that makes them")
	}
	wav := filepath.Join(t.TempDir(), "fixture.wav")
	if err := audiotest.WriteWAV(wav, 44100, fixture()); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, args := range fixtures {
		cmd := append([]string{"-y", "-loglevel", "error", "-i", wav, "-fflags", "+bitexact"}, strings.Fields(args)...)
		out, err := exec.Command(*ffmpeg, append(cmd, filepath.Join("testdata", name))...).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
