package property

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/fault"
	"archivist/test/adversary/seeds"
)

// TestAnswersMatchStorage: after any well-formed submissions, the batch, its report, the
// job, its receipt, the object, its versions, its files and the stored version agree with
// each other and with the submission.
func TestAnswersMatchStorage(t *testing.T) { explore(t, histories(3)) }

// explore plays the history of each seed in a new world. One that fails is shrunk.
func explore(t *testing.T, all *rapid.Generator[history]) {
	var failed []uint64
	played := seeds.Play(t, func(seed uint64) error { return play(t, all.Example(int(seed))) },
		func(seed uint64, err error) error {
			if err != nil {
				failed = append(failed, seed)
			}
			return err
		})
	t.Log(played)
	for _, seed := range failed {
		t.Run("shrunk", func(t *testing.T) { shrink(t, all, seed) })
	}
}

// shrink lets rapid look for a smaller history that fails like the seed's.
func shrink(t *testing.T, all *rapid.Generator[history], seed uint64) {
	for name, value := range map[string]string{"rapid.seed": fmt.Sprint(seed), "rapid.checks": "1",
		"rapid.nofailfile": "true", "rapid.shrinktime": "10s"} {
		err := flag.Set(name, value)
		if err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		err := play(t, all.Draw(r, "history"))
		if err != nil {
			r.Log(err)
			r.Fatal(strings.SplitN(err.Error(), ": ", 2)[0]) // the same in each attempt to shrink the history
		}
	})
}

// play plays a history in a new world, and returns what is not as promised, beginning with its kind.
func play(t *testing.T, h history) error {
	wrong, log := inWorld(t, func(ctx context.Context, w *world) {
		w.profile(ctx, "books", collection.Profile{Shoulder: shoulders["books"], RequireDigest: true})
		for n, s := range h.Submissions {
			w.play(ctx, n, s)
			if len(w.wrong) > 0 {
				return
			}
		}
		w.rebuild(ctx)
	})
	if len(wrong) == 0 {
		return nil
	}
	var texts []string
	for _, x := range wrong {
		texts = append(texts, x.text)
	}
	return fmt.Errorf("%s: %s\nThe log ends with:\n%s", wrong[0].kind, strings.Join(texts, "\n"), tail(log, 5))
}

func tail(log string, n int) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for i, line := range lines {
		lines[i] = short(line)
	}
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// play submits, requeues what failed until nothing more can be done, and checks the results.
func (w *world) play(ctx context.Context, n int, s submission) {
	in, jobs := w.present(n, s)
	for try := range 2 {
		out, err := w.api.Submit(ctx, in, "")
		if err != nil {
			w.notAccepted(s, in.Identifiers.Primary, err)
			return
		}
		w.rest(ctx, []string{out.ID})
		made := w.requeue(ctx, out.ID)
		if len(w.wrong) > 0 {
			return
		}
		if try > 0 || !s.troubled() || !lost(s, made) {
			w.judge(ctx, out.ID, s, jobs, made)
			return
		}
		if len(made) == 0 {
			w.unpacked(ctx, out.ID, s, nil)
		}
	}
}

// lost reports whether a batch's manifest could not be fetched, so that it has to be
// submitted again.
func lost(s submission, made []v1.Job) bool {
	return len(made) == 0 || many(s.Kind) && s.Untyped && len(made) == 1 && made[0].State == string(ingest.Failed)
}

// troubled reports whether a source of the submission fails.
func (s submission) troubled() bool {
	return s.Failing.How != fine || slices.ContainsFunc(s.Objects, func(o object) bool {
		return o.Failing.How != fine || slices.ContainsFunc(o.Files, func(f file) bool { return f.Failing.How != fine })
	})
}

// requeue repairs the sources, requeues the jobs that can be requeued, and returns all jobs.
func (w *world) requeue(ctx context.Context, batch string) []v1.Job {
	for range 3 {
		jobs := w.jobs(ctx, batch)
		again := false
		w.source.repair()
		for _, j := range jobs {
			if !j.Recoverable {
				continue
			}
			action := v1.Action{Action: "requeue", Reason: "the source works again"}
			_, err := w.api.ActOnJob(ctx, j.ID, action, "")
			if fault.Is(err, fault.Conflict) { // Another job of the batch, for the same object, has overtaken it.
				action.Confirm = true
				_, err = w.api.ActOnJob(ctx, j.ID, action, "")
			}
			if err != nil && !fault.Is(err, fault.Conflict) {
				w.fail("requeue of %s: %v", j.ID, err)
			}
			if err != nil {
				w.overtaken[j.ID] = true
			}
			again = again || err == nil
		}
		if !again {
			return jobs
		}
		w.rest(ctx, []string{batch})
	}
	return w.jobs(ctx, batch)
}

func (w *world) jobs(ctx context.Context, batch string) []v1.Job {
	jobs, err := w.api.Jobs(ctx, v1.Filter{Batch: batch})
	if err != nil {
		w.fail("the jobs of %s: %v", batch, err)
	}
	return jobs
}

// notAccepted checks a submission, with an ARK or none, that the API refused.
func (w *world) notAccepted(s submission, primary string, err error) {
	if !fault.Is(err, fault.Invalid) {
		w.fail("the submission got the answer %v", err)
		return
	}
	w.sentence(err.Error())
	if s.Strange {
		return
	}
	if many(s.Kind) && (len(s.Form.Local) > 0 || s.Form.Primary != 0 || s.IfVersion > 0) {
		return
	}
	if s.Kind == ingest.TypeFile && s.Collection == "books" && s.Objects[0].Files[0].Check.Algorithm == "" ||
		s.Form.Primary == -2 {
		return
	}
	stands := w.known.objects[primary]
	elsewhere := stands == nil && s.Collection != "maps" || stands != nil && stands.collection != s.Collection
	if primary != "" && elsewhere { // its ARK is not on the collection's shoulder, or another collection's
		return
	}
	w.fail("a good submission is refused: %v", err)
}

// unpacked checks a batch without jobs.
func (w *world) unpacked(ctx context.Context, batch string, s submission, jobs []*job) {
	b, err := w.api.Batch(ctx, batch)
	if err != nil || b.State != string(ingest.BatchFailed) || b.Message == "" {
		w.fail("batch %s has no jobs, is %s with the message %q, %v", batch, b.State, b.Message, err)
	}
	w.sentence(b.Message)
	for _, j := range jobs {
		if s.Strange || w.refused(j) != "" || s.Check.refuses() && s.Check.Algorithm != "" {
			return
		}
	}
	if jobs != nil {
		w.fail("batch %s has no jobs, but nothing was wrong with it: %s", batch, short(b.Message))
	}
}

// sentence checks that a message has nothing that no message may have.
func (w *world) sentence(message string) {
	for _, bad := range []string{"without an answer", "panic", "%!", "ConditionalCheckFailed"} {
		if strings.Contains(message, bad) {
			w.fail("a message for people has %q", short(message))
		}
	}
	if len(message) > 20_000 || !utf8.ValidString(message) || strings.ContainsFunc(message,
		func(c rune) bool { return unicode.IsControl(c) && c != '\n' }) {
		w.fail("a message for people has %d bytes: %+q", len(message), short(message))
	}
}

// judge compares the result of a submission with the expected one.
func (w *world) judge(ctx context.Context, batch string, s submission, jobs []*job, made []v1.Job) {
	if len(made) == 0 {
		w.unpacked(ctx, batch, s, jobs)
		return
	}
	if len(made) != len(jobs) {
		w.fail("%d jobs were made for %d objects: %s", len(made), len(jobs), w.explain(ctx, batch))
		return
	}
	type pair struct {
		*job
		v1.Job
	}
	var pairs []pair
	for i := range jobs {
		pairs = append(pairs, pair{jobs[i], made[i]})
	}
	for _, p := range pairs { // before any of them is known
		w.outcome(p.job, p.Job)
	}
	slices.SortStableFunc(pairs,
		func(a, b pair) int { return a.Version*2 + flagOf(a.NoChange) - b.Version*2 - flagOf(b.NoChange) })
	root := w.root()
	for _, p := range pairs {
		if p.State == string(ingest.Completed) && len(w.wrong) == 0 {
			w.preserved(ctx, p.job, p.Job, root[p.Identifiers.Primary])
		}
	}
	w.leftOver(pairsOf(pairs, func(p pair) v1.Job { return p.Job }))
	if len(w.wrong) == 0 {
		w.report(ctx, batch, made)
	}
}

func pairsOf[P, T any](in []P, f func(P) T) (out []T) {
	for _, p := range in {
		out = append(out, f(p))
	}
	return out
}

func flagOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// outcome compares how a job ended with the expected outcome.
func (w *world) outcome(j *job, made v1.Job) {
	must, s := w.refused(j), j.submission
	switch {
	case made.State == string(ingest.Failed) && s.Strange && must == "":
		// Strange ids can be those of another job, which has overtaken this one: then a requeue is refused.
		if made.Recoverable && !w.overtaken[made.ID] {
			w.fail("%s failed and can be requeued, but that cannot help: %s", made.ID, short(made.Message))
		}
		w.early(made)
	case made.State == string(ingest.Completed) && must != "":
		w.fail("%s is preserved as %s v%d, but must fail: %s", made.ID, made.Identifiers.Primary, made.Version, must)
	case made.State == string(ingest.Failed) && must == "" && !made.Recoverable:
		w.fail("%s failed, but nothing was wrong with it: %s", made.ID, short(made.Message))
	case made.State == string(ingest.Failed):
		if must == "" {
			w.fail("%s failed again, but its sources work: %s", made.ID, short(made.Message))
		}
		w.early(made)
	case made.State != string(ingest.Completed):
		w.fail("%s ended as %s", made.ID, made.State)
	}
}

// early checks that a failure happened in a state where it may happen.
func (w *world) early(made v1.Job) {
	if made.Message == "" {
		w.fail("%s failed without a reason", made.ID)
	}
	switch ingest.State(made.LastSuccessfulState) {
	case ingest.Processing, ingest.Storing, ingest.Recording:
		w.fail("%s failed after %s; an earlier state should have detected this: %s", made.ID, made.LastSuccessfulState,
			short(made.Message))
	}
	w.sentence(made.Message)
}

// leftOver checks that a failed job left nothing in the storage root, and a completed one no
// work files.
func (w *world) leftOver(made []v1.Job) {
	for bucket, ended := range map[string]ingest.State{"storage": ingest.Failed, "work": ingest.Completed} {
		keys := w.keys(bucket)
		for _, j := range made {
			if i := slices.IndexFunc(keys, func(key string) bool { return strings.Contains(key, j.ID+"/") }); i >= 0 &&
				j.State == string(ended) {
				w.fail("%s is %s, but left %s behind", j.ID, ended, keys[i])
			}
		}
	}
}
