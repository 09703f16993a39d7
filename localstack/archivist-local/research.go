package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"archivist/localstack"
	v1 "archivist/pkg/api/v1"
)

// Size of the sample of research: it takes some seconds.
const (
	sampleEpisodes = 6
	sampleClips    = 10
	sampleSlots    = 6 // of each episode, two seconds each
)

// study is the sample of research under way. The keys are those that the archive has given to the recordings, in
// the order of the sample, so that the index in both is the same.
type study struct {
	*localstack.ResearchSample
	root   string // of the checkout
	state  string // the folder of what is up
	client *v1.Client
	env    []string // by which researchers sign in
	// started is shown with the coverage, and bounds the wait.
	started  time.Time
	episodes []string // keys
	clips    []string // keys
}

// research makes recordings in which clips are hidden, lets two researchers find them, and compares what they found
// with where they were hidden.
func research(ctx context.Context, root string) error {
	o, err := up(root)
	if err != nil {
		return err
	}

	r := &study{
		ResearchSample: localstack.NewResearchSample(sampleEpisodes, sampleClips, sampleSlots),
		root:           root,
		state:          o.State,
		started:        time.Now(),
		client:         o.Client("make-research"),
		env:            o.Environment(),
	}

	// Below the state of what is up, so that its end removes the recordings, too.
	folder := filepath.Join(r.state, "research", "recordings")
	err = r.Write(folder)
	if err != nil {
		return err
	}

	// The researchers are processes of this machine, so loopback is enough; nobody else needs the recordings.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	recordings := &http.Server{Handler: http.FileServer(http.Dir(folder)),
		ReadHeaderTimeout: time.Minute}
	go func() { _ = recordings.Serve(l) }() // until it is closed
	defer recordings.Close()
	err = r.curate(ctx, "http://"+l.Addr().String())
	if err != nil {
		return err
	}

	all, err := r.find(ctx)
	// Also after an error, so that no researcher goes on by itself.
	for n, cmd := range all {
		err = errors.Join(err, r.windDown(cmd, researcherName(n)))
	}

	if err != nil {
		return err
	}
	return r.compare(ctx)
}

// find starts two researchers and waits until all is researched. It returns those that it has started, also beside an
// error: the caller ends them.
func (r *study) find(ctx context.Context) (all []*exec.Cmd, err error) {
	for n := range 2 {
		cmd, err := r.start(researcherName(n))
		if err != nil {
			return all, err
		}
		all = append(all, cmd)
	}
	return all, r.await(ctx)
}

// researcherName is the name of the researcher n, from 0.
func researcherName(n int) string { return fmt.Sprintf("sample-%d", n+1) }

// curate makes the project, and tells it of the recordings, which are served at base.
func (r *study) curate(ctx context.Context, base string) error {
	_, err := r.client.ApplyResearch(ctx, v1.ResearchDefinition{
		Name:        localstack.ResearchProject,
		MaxClips:    4,
		Description: "Where the clips of the sample are hidden.",
		Analysis:    v1.ResearchAnalysis{Name: "correlation", Version: "1"},
	}, "make research")
	if err != nil {
		return err
	}

	r.episodes, err = r.add(ctx, base, v1.Episodes, len(r.Episodes), localstack.EpisodeName)
	if err != nil {
		return err
	}

	r.clips, err = r.add(ctx, base, v1.Clips, len(r.Episodes[0].Clips), localstack.ClipName)
	return err
}

// add curates n recordings, and returns their keys. One that is refused ends it.
func (r *study) add(ctx context.Context, base, kind string, n int,
	name func(int) string) (keys []string, err error) {
	var records []v1.ResearchRecord
	for i := range n {
		records = append(records, v1.ResearchRecord{
			Source: "sample",
			ID:     name(i),
			Title:  name(i),
			URL:    base + "/" + name(i) + ".wav",
		})
	}

	done, err := r.client.Curate(ctx, localstack.ResearchProject, kind, records)
	for i, d := range done {
		if d.Problem != "" {
			return nil, fmt.Errorf("%s: %s", name(i), d.Problem)
		}
		keys = append(keys, d.Key)
	}
	return keys, err
}

// start starts a researcher. What it says goes to a file of its name. It may fetch from loopback, which a
// researcher otherwise refuses.
func (r *study) start(name string) (*exec.Cmd, error) {
	log, err := os.Create(r.log(name))
	if err != nil {
		return nil, err
	}

	defer log.Close()
	cmd := exec.Command(filepath.Join(r.root, "dist", "archivist"), "research", "work", "--api",
		r.client.URL,
		"--project", localstack.ResearchProject, "--name", name, "--cache",
		filepath.Join(r.state, "research", "cache"),
		"--allow", "127.0.0.0/8")

	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), r.env...), log, log
	return cmd, cmd.Start()
}

// windDown ends a researcher as a person does, and waits until it has given its work back. If it failed, the error
// has the end of its log.
func (r *study) windDown(cmd *exec.Cmd, name string) error {
	_ = cmd.Process.Signal(syscall.SIGTERM) // it has perhaps ended
	err := cmd.Wait()
	if err == nil {
		return nil
	}

	const shown = 2000 // bytes
	log, unread := os.ReadFile(r.log(name))
	return errors.Join(fmt.Errorf("researcher %s failed: %w; the end of its log %s:\n%s", name, err, r.log(name),
		log[max(0, len(log)-shown):]), unread)
}

// log is the file of what a researcher says.
func (r *study) log(name string) string { return filepath.Join(r.state, name+".log") }

// limitOfStudy is how long the sample may take: it usually takes some seconds, and does not go on if something
// is wrong.
const limitOfStudy = 3 * time.Minute

// await shows the coverage until all is researched. The number of pairs is compared, too: right after curation
// there are none, of which all are researched.
func (r *study) await(ctx context.Context) error {
	for {
		s, err := r.client.ResearchStatus(ctx, localstack.ResearchProject)
		if err != nil {
			return err
		}

		c := s.Coverage
		fmt.Printf("%4d s  %3d of %d pairs researched, %d leased, %d open; researchers present: %d\n",
			int(time.Since(r.started).Seconds()), c.Researched, c.Pairs, c.Leased, c.Open,
			s.Researchers)

		switch {
		// All pairs must be there, too: right after curation there are none, and all of them are researched.
		case c.Researched == c.Pairs && c.Pairs == int64(len(r.episodes)*len(r.clips)):
			return nil
		case time.Since(r.started) > limitOfStudy:
			return fmt.Errorf("not all is researched after %s; see the logs in %s", limitOfStudy, r.state)
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}

// compare compares what was found with what was hidden, for every pair: nothing may be missed, and nothing found
// elsewhere.
func (r *study) compare(ctx context.Context) error {
	hits, worst := 0, int64(0)
	for e, key := range r.episodes {
		// At most 1,000, and a sample has ten clips.
		results, err := r.client.ResearchResults(ctx, localstack.ResearchProject, v1.Episodes, key, 1000)
		if err != nil {
			return err
		}

		for _, result := range results {
			found := []int64{}
			for _, h := range result.Hits {
				found = append(found, h.Offset)
			}
			off, err := r.Compare(e, slices.Index(r.clips, result.Clip), found)
			if err != nil {
				return err
			}
			hits, worst = hits+len(found), max(worst, off)
		}
	}

	fmt.Printf("All clips were found where they were hidden, and nowhere else: %d places, at most %d µs off.\n", hits,
		(worst+999)/1000)
	return nil
}
