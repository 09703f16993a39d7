package stage_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/objects/inventory"
)

// TestOrderAsAccepted: submissions for one object become its versions in the order in which they were accepted, by
// whatever of its identifiers they name it, and in whatever order they are unpacked and worked on.
func TestOrderAsAccepted(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			o := &ordered{World: stagetest.NewWorld(t), rng: rand.New(rand.NewPCG(seed, 7))}
			o.accepted = map[int][]string{}
			o.Machine.Pick = o.rng.IntN
			if seed%2 == 0 {
				o.Machine.Pick = o.newest
			}
			for n := 0; n < 40; {
				switch o.rng.IntN(8) {
				case 0:
					o.accept(n)
					n++
				case 1, 2:
					o.tick()
				case 3:
					if o.rng.IntN(8) == 0 {
						o.Drive() // what is accepted next finds the objects on record
					}
				default:
					if err := o.Machine.One(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			o.Drive()
			o.Drive()
			o.check()
		})
	}
}

// ordered is a world of some objects with several identifiers each.
type ordered struct {
	*stagetest.World
	rng      *rand.Rand
	accepted map[int][]string // jobs by the number of the object
}

// newest prefers the newest messages, so that submissions are overtaken by later ones.
func (o *ordered) newest(waiting int) int {
	if o.rng.IntN(4) > 0 {
		return waiting - 1
	}
	return o.rng.IntN(waiting)
}

func (o *ordered) tick() {
	if err := o.Machine.Scheduler.Tick(o.Context(), false); err != nil {
		o.Fatal(err)
	}
}

// accept submits the nth file for one of the objects.
func (o *ordered) accept(n int) {
	object := o.rng.IntN(4)
	b := ingest.Batch{Collection: "bench", Mode: "add", Payload: ingest.Payload{Type: ingest.TypeFile,
		URL: fmt.Sprintf("%s/file-%d", o.Source.URL, n), Filename: "file"}}
	b.Primary, b.LocalIDs = o.names(object, len(o.accepted[object]) == 0)
	row, err := o.Machine.Queue.Submit(o.Context(), b, "", nil, "me")
	if err != nil {
		o.Fatal(err)
	}
	o.accepted[object] = append(o.accepted[object], ingest.JobID(row.Batch.ID, 1))
}

// names draws some of an object's identifiers. The first submission has both of its local ids, so that it is known
// which object they name.
func (o *ordered) names(object int, first bool) (ark string, local []string) {
	all := []string{fmt.Sprintf("a%d", object), fmt.Sprintf("b%d", object)}
	if first {
		return "", all
	}
	ark, err := (inventory.Store{Table: o.Machine.Queue.Table}).ByLocalID(o.Context(), "bench", all[0])
	if err != nil {
		o.Fatal(err)
	}
	switch o.rng.IntN(4) {
	case 0:
		return "", all[:1]
	case 1:
		return "", all[1:]
	case 2:
		if ark != "" {
			return ark, nil
		}
	}
	return ark, all[:1]
}

// check compares the versions with what was accepted.
func (o *ordered) check() {
	for object, jobs := range o.accepted {
		ark := ""
		for _, id := range jobs {
			j := o.Job(id)
			if j.State != ingest.Completed {
				o.Errorf("object %d: job %s is %s: %s", object, id, j.State, j.Message)
			}
			ark = j.Primary
		}
		versions, _, err := (inventory.Store{Table: o.Machine.Queue.Table}).Versions(o.Context(), ark, "")
		if err != nil {
			o.Fatal(err)
		}
		var stored []string
		for _, v := range versions {
			stored = append(stored, v.Job)
		}
		if !slices.Equal(stored, jobs) {
			o.Errorf("object %d: accepted were\n%v, stored are\n%v", object, jobs, stored)
		}
	}
}
