package audio

// Info describes a file as it is stored. Channels are those before they are averaged.
type Info struct {
	Format   string // "WAV", "FLAC" or "MP3"
	Rate     int    // samples per second
	Channels int
}

// decoder gives the samples of a file at its own rate, the channels averaged. A decoder that
// has to be closed is an io.Closer, too.
type decoder interface {
	info() Info
	// read fills buf from its start. It returns io.EOF, with 0 samples, after the last one.
	// It may give less than buf holds. An error comes without samples.
	read(buf []float32) (int, error)
}
