// The decoder of MP3 that pkg/formats/audio runs as WebAssembly: dr_mp3 by David Reid (public domain or MIT-0), as miniaudio.h
// contains it, with what that needs of wasi-libc (MIT). It imports nothing and its memory does not grow, so a damaged
// file can spoil only what is in there.
#define MINIAUDIO_IMPLEMENTATION
#define MA_NO_DEVICE_IO
#define MA_NO_ENCODING
#define MA_NO_ENGINE
#define MA_NO_FLAC
#define MA_NO_GENERATION
#define MA_NO_NODE_GRAPH
#define MA_NO_RESOURCE_MANAGER
#define MA_NO_STDIO
#define MA_NO_THREADING
#define MA_NO_VORBIS
#define MA_NO_WAV
#define MA_DR_MP3_FLOAT_OUTPUT
#define MA_DR_MP3_ONLY_MP3
#include "miniaudio.h"

#define EXPORT(name) __attribute__((export_name(#name))) name

static unsigned char in[2048]; // a frame of layer III has at most 1,441 bytes
static float pcm[2 * 1152], out[1152];
static ma_dr_mp3dec decoder;

unsigned char *EXPORT(frame)(void) { return in; }
float *EXPORT(samples)(void) { return out; }

// clip makes -1 of what is not a number.
static float clip(float v) { return v > 1 ? 1 : v > -1 ? v : -1; }

// decode decodes the frame, which has that many bytes, and returns how many samples it gave: the mean of the channels.
// It is 0 if the frame is damaged. A frame that needs data of frames that are not there is silence.
int EXPORT(decode)(int size) {
	ma_dr_mp3dec_frame_info info = {0};
	int n = ma_dr_mp3dec_decode_frame(&decoder, in, size, pcm, &info);
	if (n == 0 && decoder.header[0] != 0) {
		n = ma_dr_mp3_hdr_frame_samples(in);
		MA_DR_MP3_ZERO_MEMORY(pcm, sizeof pcm);
	}
	for (int i = 0; i < n; i++)
		out[i] = info.channels == 1 ? clip(pcm[i]) : (clip(pcm[2 * i]) + clip(pcm[2 * i + 1])) / 2;
	return n;
}
