package researchsim

import (
	"encoding/json"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/research"
	"archivist/test/adversary"
)

// songs is the project of all tests.
const songs = "songs"

// text, number and either read rows as they are stored.
var text, number, either = adversary.Text, adversary.Number, adversary.Either

// Rows as they are stored.
type (
	projectRow struct {
		Version    int64    `dynamo:"version"`
		Generation int64    `dynamo:"round_no"`
		Past       []string `dynamo:"analyses"`
		Catalog    int64    `dynamo:"catalog_no"`
		Numbers    int64    `dynamo:"numbers"`
		Text       string   `dynamo:"project_json"`
		Paused     string   `dynamo:"paused"`
	}
	episodeRow struct {
		Version    int64  `dynamo:"version"`
		Text       string `dynamo:"media_json"`
		Generation int64  `dynamo:"round_no"`
		Researched []byte `dynamo:"researched"`
		Waiting    []byte `dynamo:"waiting"`
		Differs    []byte `dynamo:"differs"`
		Leased     []struct {
			Lease string `dynamo:"lease_id"`
			Until int64  `dynamo:"until_ms"`
			Clips []byte `dynamo:"clip_nos"`
		} `dynamo:"held"`
		Place   string `dynamo:"place_in"`
		Further string `dynamo:"further_in"`
		Counted int64  `dynamo:"counted_n"`
		Differ  int64  `dynamo:"counted_differ_n"`
		Partial int64  `dynamo:"counted_waiting_n"`

		media      research.Media
		researched *roaring.Bitmap
		waiting    *roaring.Bitmap
		differs    *roaring.Bitmap
	}
	clipRow struct {
		Version int64  `dynamo:"version"`
		Text    string `dynamo:"media_json"`
		Clip    uint32 `dynamo:"clip_no"`
		Listed  int64  `dynamo:"catalog_no"`

		media research.Media
	}
	catalogRow struct {
		Owner  string `dynamo:"owned_by"`
		Number uint32 `dynamo:"clip_no"`
		Live   bool   `dynamo:"live"`
	}
	leaseRow struct {
		Version int64 `dynamo:"version"`
		research.Lease
	}
	pairRow struct {
		Generation int64  `dynamo:"round_no"`
		List       string `dynamo:"shelf"`
		Lease      string `dynamo:"lease_id"`
		Sequence   int    `dynamo:"result_no"`
		Episode    string `dynamo:"episode_key"`
		Clip       string `dynamo:"clip_key"`

		Decided bool   `dynamo:"by_person"`
		Marks   string `dynamo:"hit_marks"`
	}
	walkRow struct {
		Catalog int64  `dynamo:"catalog_no"`
		After   string `dynamo:"after_sk"`
	}
	countRow struct {
		Ready   int64 `dynamo:"ready_n"`
		Closed  int64 `dynamo:"closed_n"`
		Away    int64 `dynamo:"away_n"`
		Pairs   int64 `dynamo:"pairs_n"`
		Results int64 `dynamo:"results_n"`
		Reviews int64 `dynamo:"reviews_n"`
		Differ  int64 `dynamo:"differ_n"`
		Waiting int64 `dynamo:"waiting_n"`
	}
)

// state is all rows of the project.
type state struct {
	project  projectRow
	def      research.Project
	episodes map[string]*episodeRow // by key
	clips    map[string]*clipRow
	catalog  map[string]catalogRow
	leases   map[string]*leaseRow
	line     map[string]string // sort key → owner
	counts   map[string]countRow
	results  map[string]research.Report // by partition and sort key
	differs  map[string]pairRow         // by partition and sort key
	present  map[string]research.Researcher
	events   map[string]int64 // by partition: the version of the newest
	walk     walkRow
}

func newState() *state {
	return &state{episodes: map[string]*episodeRow{}, clips: map[string]*clipRow{}, catalog: map[string]catalogRow{},
		leases: map[string]*leaseRow{}, line: map[string]string{}, counts: map[string]countRow{},
		results: map[string]research.Report{}, differs: map[string]pairRow{},
		present: map[string]research.Researcher{}, events: map[string]int64{}}
}

// bits decodes a bitmap.
func bits(data []byte) *roaring.Bitmap {
	b := roaring.New()
	if len(data) > 0 {
		if _, err := b.FromBuffer(append([]byte(nil), data...)); err != nil {
			panic(err)
		}
	}
	return b
}

func decode[T any](data string) (v T) {
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		panic(err)
	}
	return v
}

// set keeps a value, or removes it with its row.
func set[T any](m map[string]T, key string, ch tabletest.Change, v func(tabletest.Item) T) {
	delete(m, key)
	if ch.After != nil {
		m[key] = v(ch.After)
	}
}

// prefixes of the partitions of subjects.
const (
	episodePK = "EPISODE#" + songs + "/"
	clipPK    = "CLIP#" + songs + "/"
	leasePK   = "RESEARCHLEASE#"
)

// apply takes over one change of a row. It reports whether it is one of research.
func (s *state) apply(ch tabletest.Change) bool {
	row := either(ch)
	pk, sk := text(row, "pk"), text(row, "sk")
	kind, rest, _ := strings.Cut(pk, "#")
	switch {
	case strings.HasPrefix(sk, event.Prefix):
		if ch.Before == nil {
			s.events[pk] = number(ch.After, "version")
		}
		return false
	case pk == "RESEARCHPROJECT#"+songs:
		s.project = adversary.Read[projectRow](ch.After)
		s.def = decode[research.Project](s.project.Text)
	case kind == "EPISODE":
		set(s.episodes, strings.TrimPrefix(pk, episodePK), ch, readEpisode)
	case kind == "CLIP":
		set(s.clips, strings.TrimPrefix(pk, clipPK), ch, func(it tabletest.Item) *clipRow {
			r := adversary.Read[clipRow](it)
			r.media = decode[research.Media](r.Text)
			return &r
		})
	case kind == "RESEARCHLEASE":
		set(s.leases, rest, ch, func(it tabletest.Item) *leaseRow {
			r := adversary.Read[leaseRow](it)
			return &r
		})
	case kind == "CLIPS":
		set(s.catalog, sk, ch, adversary.Read[catalogRow])
	case kind == "RESEARCHLINE":
		set(s.line, sk, ch, func(it tabletest.Item) string { return text(it, "owned_by") })
	case kind == "RESEARCHCOUNTS":
		set(s.counts, sk, ch, adversary.Read[countRow])
	case kind == "RESULTS":
		set(s.results, pk+" "+sk, ch, func(it tabletest.Item) research.Report {
			return decode[research.Report](text(it, "report_json"))
		})
	case kind == "RESEARCHOPINIONS":
		if strings.HasPrefix(sk, "pair#") {
			set(s.differs, pk+" "+sk, ch, adversary.Read[pairRow])
		}
	case kind == "RESEARCHERS":
		set(s.present, sk, ch, func(it tabletest.Item) research.Researcher {
			return adversary.Read[struct{ research.Researcher }](it).Researcher
		})
	case kind == "RESEARCHCONDUCT": // what follows from it is checked where work is accepted
	case kind == "RESEARCHWALK":
		s.walk = adversary.Read[walkRow](ch.After)
	default:
		return false
	}
	return true
}

func readEpisode(it tabletest.Item) *episodeRow {
	r := adversary.Read[episodeRow](it)
	r.media, r.researched = decode[research.Media](r.Text), bits(r.Researched)
	r.waiting, r.differs = bits(r.Waiting), bits(r.Differs)
	return &r
}

// live reports whether it can be researched.
func live(m research.Media) bool { return !m.Withdrawn && m.Quarantined == "" && m.Deferred == 0 }
