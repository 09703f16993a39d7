package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"archivist/localstack"
	v1 "archivist/pkg/api/v1"
)

// study is a project of research with recordings whose hits are known.
type study struct {
	*localstack.ResearchSample
	t        *testing.T
	src      *source
	episodes []string // keys
	clips    []string // keys, in the order of research
}

// newStudy makes a project with episodes and clips.
func newStudy(t *testing.T, episodes, clips int) *study {
	s := &study{ResearchSample: localstack.NewResearchSample(episodes, clips, 5), t: t, src: newSource(t)}
	dir := t.TempDir()
	s.must(s.Write(dir))
	_, err := client.ApplyResearch(t.Context(), v1.ResearchDefinition{Name: localstack.ResearchProject,
		Analysis: v1.ResearchAnalysis{Name: "correlation", Version: "1"}}, "a test")
	s.must(err)
	s.episodes = s.add(dir, v1.Episodes, episodes, localstack.EpisodeName)
	s.clips = s.add(dir, v1.Clips, clips, localstack.ClipName)
	return s
}

func (s *study) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// add curates recordings. The first ones have the highest priority.
func (s *study) add(dir, kind string, n int, name func(int) string) (keys []string) {
	s.t.Helper()
	var records []v1.ResearchRecord
	for i := range n {
		file := name(i) + ".wav"
		data, err := os.ReadFile(filepath.Join(dir, file))
		s.must(err)
		priority := n - i
		records = append(records, v1.ResearchRecord{Source: "e2e", ID: name(i), Title: name(i), Priority: &priority,
			URL: s.src.put("/"+file, data), Size: int64(len(data))})
	}
	done, err := client.Curate(s.t.Context(), localstack.ResearchProject, kind, records)
	s.must(err)
	for _, d := range done {
		if d.Problem != "" {
			s.t.Fatal(d.Problem)
		}
		keys = append(keys, d.Key)
	}
	return keys
}

// program is a researcher, as a process.
type program struct {
	*exec.Cmd
	said *bytes.Buffer
}

// start starts a researcher with a cache.
func (s *study) start(name, cache string, options ...string) program {
	s.t.Helper()
	p := program{exec.Command(filepath.Join(stack.Root, "dist", "archivist"), "research", "work", "--api", out.APIURL,
		"--project", localstack.ResearchProject, "--name", name, "--cache", cache, "--allow", "127.0.0.0/8"),
		&bytes.Buffer{}}
	p.Args = append(p.Args, options...)
	c := researcherRole(s.t, localstack.ResearchProject)
	p.Env = append(append(os.Environ(), stack.Environment()...), "AWS_ACCESS_KEY_ID="+*c.AccessKeyId,
		"AWS_SECRET_ACCESS_KEY="+*c.SecretAccessKey, "AWS_SESSION_TOKEN="+*c.SessionToken)
	p.Stdout, p.Stderr = p.said, p.said
	s.must(p.Start())
	s.t.Cleanup(func() { _ = p.Process.Kill() }) // it has ended if the test succeeds
	return p
}

// researched waits until so many pairs are researched.
func (s *study) researched(n int64, within time.Duration) {
	s.t.Helper()
	until(s.t, fmt.Sprintf("%d pairs are researched", n), within, func() bool {
		is, err := client.ResearchStatus(s.t.Context(), localstack.ResearchProject)
		s.must(err)
		return is.Coverage.Researched >= n
	})
}

// assigns plays the rule that wakes the assigner each minute, more often.
func assigns(ctx context.Context) {
	name := out.All["pendingWorkFunction"]
	tick := time.NewTicker(tickEach)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_, _ = lambda.NewFromConfig(cfg).Invoke(ctx, &lambda.InvokeInput{FunctionName: &name, Payload: []byte("{}")})
	}
}

// unavailable is the exit code of a researcher whose last results were not taken in the time of its farewell: on a
// machine that is busy. Its lease ends later then.
const unavailable = 7

// TestResearchers: of two researchers one is killed in the middle of a work item, and one is wound down in the middle
// of the work and replaced by one that receives from the queue itself. Each pair is researched once, and each clip
// found where it was hidden. What the killed one had reported counts; the rest of its work item is assigned again
// when its lease has expired.
func TestResearchers(t *testing.T) {
	begin(t)
	const episodes, clips, before = 20, 10, 6
	s := newStudy(t, episodes, clips)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go assigns(ctx)
	free := s.src.hold("/" + localstack.ClipName(before) + ".wav")
	caches := []string{t.TempDir(), t.TempDir()}
	one, two := s.start("one", caches[0]), s.start("two", caches[1])
	s.researched(2*before, soon) // both are in the middle of their work items
	s.must(one.Process.Kill())
	_ = one.Wait() // it was killed
	free()
	s.researched(episodes*clips/3, soon)
	s.must(two.Process.Signal(syscall.SIGTERM))
	if err := two.Wait(); err != nil && two.ProcessState.ExitCode() != unavailable {
		t.Errorf("winding down: %v\n%s", err, two.said)
	}
	until(t, "the lease of who was wound down has ended", soon, func() bool {
		live, err := client.ResearchLeases(t.Context(), localstack.ResearchProject, 100)
		s.must(err)
		its := func(l v1.ResearchLease) bool { return l.Researcher == "two" && l.Ended == "" }
		return !slices.ContainsFunc(live, its)
	})
	three := s.start("three", caches[0], "--queue", named("pendingQueues", localstack.ResearchProject))
	s.researched(episodes*clips, soon)
	s.must(three.Process.Signal(syscall.SIGTERM))
	if err := three.Wait(); err != nil && three.ProcessState.ExitCode() != unavailable {
		t.Errorf("winding down: %v\n%s", err, three.said)
	}
	s.exact()
}

// exact checks that each pair has one result, which is right.
func (s *study) exact() {
	s.t.Helper()
	by, hits, again := map[string]int{}, 0, 0
	for e, key := range s.episodes {
		results, err := client.ResearchResults(s.t.Context(), localstack.ResearchProject, v1.Episodes, key, 1000)
		s.must(err)
		seen := map[string]bool{}
		for _, r := range results {
			by[r.Researcher]++
			if seen[r.Clip] {
				again++
			}
			seen[r.Clip] = true
			var found []int64
			for _, h := range r.Hits {
				found = append(found, h.Offset)
			}
			hits += len(found)
			_, err := s.Compare(e, slices.Index(s.clips, r.Clip), found)
			if err != nil || r.Problem != nil {
				s.t.Errorf("%v %+v", err, r.Problem)
			}
		}
		if len(seen) != len(s.clips) {
			s.t.Errorf("%s has results of %d clips", localstack.EpisodeName(e), len(seen))
		}
	}
	s.t.Logf("results by researcher: %v; %d hits", by, hits)
	if again != 0 || hits == 0 || len(by) != 3 {
		s.t.Errorf("%d pairs were researched twice; %d hits; by %v", again, hits, strings.Join(s.clips, " "))
	}
}
