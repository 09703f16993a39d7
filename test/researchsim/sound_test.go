package researchsim

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/research"
	"archivist/test/adversary"
)

// waveRow is how an episode sounds, as it is stored.
type waveRow struct {
	Recording  string `dynamo:"recording"`
	Generation int64  `dynamo:"round_no"`
	Said       []struct {
		Researcher string `dynamo:"researcher"`
		Length     int64  `dynamo:"length_ns"`
		Peaks      []byte `dynamo:"peaks"`
	} `dynamo:"said"`
	Agreed bool `dynamo:"agreed"`
}

// hashed is a number that follows from texts. What depends on it needs no random number, so that the
// histories of seeds stay as they are.
func hashed(texts ...any) uint32 {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, texts...)
	return h.Sum32()
}

// soundOf is how the recording at an address sounds: the same for each researcher.
func soundOf(url string) *research.Waveform {
	n := hashed(url)
	return &research.Waveform{Length: 1 + int64(n), Peaks: []byte{byte(n), byte(n >> 8), byte(n >> 16)}}
}

// sounds adds to the first result of a work item how its recording sounds: the one that the researcher
// was told of, which may be another one by now: of some work items, a curator moves it at this time.
// Before others it sends a waveform of too many parts, which is refused.
func (a *actor) sounds(ctx context.Context, wk *work, r *research.Report) {
	if !a.w.s.sound || r.Sequence != 1 || hashed(wk.Lease.ID)%4 == 0 {
		return
	}
	switch hashed(wk.Lease.ID) % 4 {
	case 1:
		long := *r
		long.Waveform = &research.Waveform{Length: 1, Peaks: bytes.Repeat([]byte{1}, 1001)}
		if _, err := a.store.Record(ctx, long); !fault.Is(err, fault.Invalid) {
			a.w.check.fail("a waveform of 1,001 parts: %v", err)
		}
		a.w.Met("waveform: too long")
	case 2:
		if e := a.w.check.episodes[wk.Episode.Key]; e != nil && !a.w.Calm {
			a.curateOne(ctx, research.Curated{Project: songs, Kind: research.Episode, Source: e.media.Source,
				ID: e.media.ID, URL: "https://media.example.org/" + wk.Lease.ID, Curated: time.Now().UnixMilli()})
		}
	}
	r.Waveform = soundOf(wk.Episode.URL)
	if e := a.w.check.episodes[wk.Episode.Key]; e != nil && e.media.URL != wk.Episode.URL {
		a.w.Met("waveform: of an earlier recording")
	}
}

// hear checks what is stored of how an episode sounds: each researcher that is in the row has heard the
// recording that the episode has, and it is agreed once as many as the quorum have.
func (c *checker) hear(ch tabletest.Change) {
	if ch.After == nil || text(ch.After, "sk") != "waveform" {
		return
	}
	key, is := strings.CutPrefix(text(ch.After, "pk"), "RESEARCHOPINIONS#"+songs+"/")
	if !is {
		return
	}
	row := adversary.Read[waveRow](ch.After)
	c.waves[key] = row
	e := c.episodes[key]
	names := map[string]bool{}
	for _, s := range row.Said {
		names[s.Researcher] = true
		want := soundOf(e.media.URL)
		if s.Length != want.Length || !bytes.Equal(s.Peaks, want.Peaks) {
			c.fail("the episode %s has the recording %s, and %s has heard another: %+v", key,
				e.media.URL, s.Researcher, row)
		}
	}
	quorum := max(c.def.Quorum, 1)
	switch {
	case row.Recording != e.media.URL+" "+e.media.SHA256 || row.Generation != c.project.Generation:
		c.fail("how the episode %s sounds is of %q, generation %d", key, row.Recording,
			row.Generation)
	case row.Agreed && quorum == 1:
		c.met("waveform: kept")
	case !row.Agreed && len(names) >= quorum:
		c.fail("%d have heard the same of %s, and it is not agreed", len(names), key)
	}
}

// shown checks what people are shown of each episode: the sound of the recording that it has, or none.
func (a *actor) shown(ctx context.Context) error {
	for _, key := range slices.Sorted(maps.Keys(a.w.check.episodes)) {
		e := a.w.check.episodes[key]
		k, err := a.store.Get(ctx, research.Episode, songs, key)
		if err != nil {
			return err
		}
		row, known := a.w.check.waves[key]
		known = known && row.Agreed && row.Recording == e.media.URL+" "+e.media.SHA256
		want := soundOf(e.media.URL)
		if (k.Waveform != nil) != known {
			return fmt.Errorf("episode %s shows the waveform %+v; known is %t", key, k.Waveform, known)
		}
		if known && (k.Waveform.Length != want.Length || !slices.Equal(k.Waveform.Peaks, want.Peaks)) {
			return fmt.Errorf("episode %s shows the waveform %+v, should be %+v", key, k.Waveform, want)
		}
	}
	return nil
}

// unmoved shows episodes as if they had had one recording only.
func unmoved(_ *actor, row tabletest.Item) {
	delete(row, "moves_n")
}
