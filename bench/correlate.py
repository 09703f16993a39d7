"""Finds clips in a recording by numpy and scipy, in the plain way, for comparison (TestAnalysis).

usage: correlate.py FOLDER fft|oaconvolve

fft: one transform of the whole recording. oaconvolve: in blocks.
"""

import glob
import json
import os
import sys
import time

import numpy as np
from scipy import signal
from scipy.io import wavfile


def load(path):
    _, samples = wavfile.read(path)
    return samples.astype(np.float32) / 32768


def find(recording, clip, rate, method, threshold=0.5):
    """The times in nanoseconds at which the normalised cross-correlation has a peak."""
    backwards = clip[::-1]
    if method == "fft":
        cross = signal.fftconvolve(recording, backwards, "valid")
    else:
        cross = signal.oaconvolve(recording, backwards, "valid")
    squares = np.concatenate(([0.0], np.cumsum(recording.astype(np.float64) ** 2)))
    energy = squares[len(clip) :] - squares[: -len(clip)]
    score = np.abs(cross) / np.sqrt(np.maximum(energy, 1e-9) * np.sum(clip.astype(np.float64) ** 2))
    peaks, _ = signal.find_peaks(score, height=threshold, distance=len(clip) // 2)
    return [int(round(p * 1e9 / rate)) for p in peaks]


def step(what, start, offsets):
    """A line for TestAnalysis."""
    with open("/proc/self/status") as status:
        memory = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    cpu = time.process_time() - start
    print(json.dumps({"what": what, "cpu": cpu, "offsets": offsets, "memory": memory}), flush=True)


def main():
    folder, method = sys.argv[1:]
    rate = 8000
    start = time.process_time()
    recording = load(os.path.join(folder, "recording.wav"))
    step("decoding WAV", start, None)
    for path in sorted(glob.glob(os.path.join(folder, "clip*.wav"))):
        start = time.process_time()
        offsets = find(recording, load(path), rate, method)
        step(os.path.basename(path), start, offsets)


main()
