package research

import (
	"bytes"
	"context"
	"slices"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/table"
)

// Waveform is how loud a recording is.
type Waveform = v1.ResearchWaveform

// waveRow is how an episode sounds, as its researchers say. It is a picture for people: nothing is
// decided by it, and researchers who say something else have no other result. It counts once as
// many researchers as the quorum of the project have said the same. That of another recording, or
// of an earlier analysis, is replaced.
type waveRow struct {
	table.Head
	Recording  string       `dynamo:"recording"` // its address and its digest
	Generation int64        `dynamo:"round_no"`
	Said       []heardSound `dynamo:"said"` // the newest of each researcher, at most MaxQuorum; the last one counts
	Agreed     bool         `dynamo:"agreed,omitempty"`
}

// heardSound is what a researcher says.
type heardSound struct {
	Researcher string `dynamo:"researcher"`
	Length     int64  `dynamo:"length_ns"`
	Peaks      []byte `dynamo:"peaks"`
}

// waveKey is the key of how an episode sounds, beside what else researchers have said of it.
func waveKey(project, episode string) table.Key {
	return table.Key{PK: opinionsPK(project, episode), SK: "waveform"}
}

// recordingOf names the recording of an episode.
func recordingOf(m *Media) string { return m.URL + " " + m.SHA256 }

// recording numbers the recordings that the episode has had, from 1: an address that comes back has
// another number.
func (e *episodeRow) recording() int64 { return e.Moves + 1 }

// recordingNow is the number of the recording that the episode of the lease has. It is read before the
// recording is that the researcher is told of: if the number is still the same when it reports, it was
// the same all the time.
func (c *change) recordingNow() (int64, error) {
	l := &c.lease.Lease
	all, err := c.s.read(c.ctx, episodeKey(l.Project, l.Episode))
	if err != nil {
		return 0, err
	}
	e, err := all.episode(l.Project, l.Episode)
	if err != nil {
		return 0, err
	}
	return e.recording(), nil
}

// hear takes over how the episode sounds, from who has accepted its lease: nobody else has read the
// recording. If the episode has got another recording since then, nobody knows which one was read. That
// is decided by numbers: the times of two machines do not say what was first.
func (c *change) hear(r *Report, w *Waveform) error {
	k := waveKey(r.Project, r.Episode)
	row := &waveRow{Head: newHead(k)}
	err := c.rows.decode(k, row)
	if err != nil || !c.own(r) || c.lease.Recording != c.episode.recording() {
		return err
	}

	recording := recordingOf(&c.episode.media)
	if row.Recording != recording || row.Generation != c.project.Generation {
		row.Recording, row.Generation, row.Said, row.Agreed = recording, c.project.Generation, nil,
			false
	}
	if row.Agreed {
		return nil
	}
	row.add(heardSound{r.Researcher, w.Length, w.Peaks}, c.project.def.quorum())
	c.tx.InsertOrSave(row)
	return nil
}

// add adds what a researcher says, in place of what it has said before.
func (r *waveRow) add(is heardSound, quorum int) {
	r.Said = slices.DeleteFunc(r.Said,
		func(s heardSound) bool { return s.Researcher == is.Researcher })
	agreeing := 1
	for _, s := range r.Said {
		if s.Length == is.Length && bytes.Equal(s.Peaks, is.Peaks) {
			agreeing++
		}
	}
	r.Said = append(r.Said[max(0, len(r.Said)+1-MaxQuorum):], is)
	if agreeing >= quorum {
		r.Said, r.Agreed = r.Said[len(r.Said)-1:], true
	}
}

// waveform is how an episode sounds, nil if that is not known.
func (s *Store) waveform(ctx context.Context, project string, of *Known) (*Waveform, error) {
	k := waveKey(project, of.Key)
	all, err := s.read(ctx, k)
	if err != nil {
		return nil, err
	}

	var row waveRow
	err = all.decode(k, &row)
	if err != nil || !row.Agreed || len(row.Said) == 0 || row.Recording != recordingOf(&of.Media) {
		return nil, err
	}
	last := row.Said[len(row.Said)-1]
	return &Waveform{Length: last.Length, Peaks: last.Peaks}, nil
}
