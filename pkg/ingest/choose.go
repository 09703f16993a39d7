package ingest

// Free is what a gate can give out now.
type Free struct {
	Slots   int
	Space   int64 // bytes
	Reserve int64 // jobs of unknown size wait while Space is below it
}

// Want is one waiting job.
type Want struct {
	ID         string
	Space      int64 // bytes; gate 1 needs none
	Known      bool  // the size is known
	HasSpace   bool  // its reservation stands already
	Collection string
}

// Choose takes, in the order given, every waiting job that fits into what is
// free. A job that does not fit lets the ones behind it pass.
func Choose(free Free, waiting []Want) []Want {
	var out []Want
	for _, w := range waiting {
		if free.Slots <= 0 {
			break
		}
		if !w.HasSpace {
			if w.Space > free.Space || !w.Known && free.Space < free.Reserve {
				continue
			}
			free.Space -= w.Space
		}
		free.Slots--
		out = append(out, w)
	}
	return out
}

// Priority of a job: 0 is best, 999 last.
const (
	DefaultPriority    = 5
	UnknownSizePenalty = 10
	WorstPriority      = 999
)
