package deposit

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	"archivist/pkg/api/v1/plan"
	"archivist/pkg/kernel/fault"
)

// Send sends all contents that the upload does not have, in their order by hundreds; the payload is the last. It ends
// with the first content that cannot be sent. Then the same call goes on.
func (s *Sender) Send(ctx context.Context, p plan.Plan) error {
	s.resumed = map[string]bool{}
	s.title(len(p.Contents))
	last := len(p.Contents) - 1
	for some := range slices.Chunk(p.Contents[:last], atOnce) {
		if err := s.some(ctx, p, some); err != nil {
			return err
		}
	}
	return s.some(ctx, p, p.Contents[last:])
}

// some sends a hundred contents, in rounds: a large one needs several, and so does one whose requests have expired.
func (s *Sender) some(ctx context.Context, p plan.Plan, missing []plan.Content) error {
	problems := map[string]int{}
	for fruitless := 0; len(missing) > 0; {
		r := &round{Sender: s, plan: p, contents: missing}
		if err := r.play(ctx); err != nil {
			return err
		}

		missing = nil
		for _, c := range r.contents {
			sum := c.SHA256
			if r.done[sum] {
				continue
			}
			missing = append(missing, c)
			problem := r.problems[sum]
			if problem != "" {
				problems[sum]++
			}
			if problems[sum] >= rounds {
				return fault.New(fault.Conflict, "%q was sent %d times, and the archive does not "+
					"take it: %s",
					c.Name, rounds, problem)
			}
		}

		fruitless++
		if r.progress {
			fruitless = 0
		}
		if fruitless >= rounds {
			return fault.New(fault.Unavailable, "%s, %d times, for requests that the API had "+
				"just made; tell the operator",
				cmp.Or(r.refusal, "there is no request for "+missing[0].Name), rounds)
		}
		if fruitless > 0 && len(missing) > 0 {
			if err := s.Wait(ctx, waits.Delay(fruitless, rand.Float64)); err != nil {
				return err
			}
		}
	}
	return nil
}
