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

// study is the sample of research under way.
type study struct {
	*localstack.ResearchSample
	stack    *localstack.Stack
	client   *v1.Client
	started  time.Time
	episodes []string // keys
	clips    []string // keys
}

// research makes recordings in which clips are hidden, lets two researchers find them, and compares what they found
// with where they were hidden.
func research(ctx context.Context, s *localstack.Stack) error {
	o, err := s.Load()
	if err != nil {
		return errDown
	}
	r := &study{ResearchSample: localstack.NewResearchSample(sampleEpisodes, sampleClips, sampleSlots), stack: s,
		client: &v1.Client{URL: o.APIURL, HTTP: http.DefaultClient, User: "make-research"}, started: time.Now()}
	folder := s.State("research", "recordings")
	err = r.Write(folder)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	recordings := &http.Server{Handler: http.FileServer(http.Dir(folder)), ReadHeaderTimeout: time.Minute}
	go func() { _ = recordings.Serve(l) }() // until it is closed
	defer recordings.Close()
	err = r.curate(ctx, "http://"+l.Addr().String())
	if err != nil {
		return err
	}
	var all []*exec.Cmd
	for n := 1; n <= 2 && err == nil; n++ {
		var cmd *exec.Cmd
		cmd, err = r.start(fmt.Sprintf("sample-%d", n))
		if err == nil {
			all = append(all, cmd)
		}
	}
	if err == nil {
		err = r.await(ctx)
	}
	for _, cmd := range all {
		err = errors.Join(err, windDown(cmd))
	}
	if err != nil {
		return err
	}
	return r.compare(ctx)
}

// curate makes the project, and tells it of the recordings.
func (r *study) curate(ctx context.Context, base string) error {
	_, err := r.client.ApplyResearch(ctx, v1.ResearchDefinition{Name: localstack.ResearchProject, MaxClips: 4,
		Description: "Where the clips of the sample are hidden.",
		Analysis:    v1.ResearchAnalysis{Name: "correlation", Version: "1"}}, "make research")
	if err != nil {
		return err
	}
	r.episodes, err = r.add(ctx, base, v1.Episodes, len(r.Episodes), localstack.EpisodeName)
	if err == nil {
		r.clips, err = r.add(ctx, base, v1.Clips, len(r.Episodes[0].Clips), localstack.ClipName)
	}
	return err
}

// add curates n recordings, and returns their keys.
func (r *study) add(ctx context.Context, base, kind string, n int, name func(int) string) (keys []string, err error) {
	var records []v1.ResearchRecord
	for i := range n {
		records = append(records, v1.ResearchRecord{Source: "sample", ID: name(i), Title: name(i),
			URL: base + "/" + name(i) + ".wav"})
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

// start starts a researcher. What it says goes to a file of its name.
func (r *study) start(name string) (*exec.Cmd, error) {
	log, err := os.Create(r.stack.State(name + ".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(r.stack.Root, "dist", "archivist"), "researcher", "--api", r.client.URL,
		"--project", localstack.ResearchProject, "--name", name, "--cache", r.stack.State("research", "cache"),
		"--allow", "127.0.0.0/8")
	cmd.Stdout, cmd.Stderr = log, log
	return cmd, cmd.Start()
}

// windDown ends a researcher as a person does.
func windDown(cmd *exec.Cmd) error {
	_ = cmd.Process.Signal(syscall.SIGTERM) // it has perhaps ended
	err := cmd.Wait()
	if err != nil {
		return fmt.Errorf("a researcher failed: %w; its log is beside %s", err, cmd.Path)
	}
	return nil
}

// limitOfStudy is how long the sample may take.
const limitOfStudy = 3 * time.Minute

// await shows the coverage until all is researched.
func (r *study) await(ctx context.Context) error {
	for {
		s, err := r.client.ResearchStatus(ctx, localstack.ResearchProject)
		if err != nil {
			return err
		}
		c := s.Coverage
		fmt.Printf("%4d s  %3d of %d pairs researched, %d leased, %d open; researchers present: %d\n",
			int(time.Since(r.started).Seconds()), c.Researched, c.Pairs, c.Leased, c.Open, s.Researchers)
		switch {
		case c.Researched == c.Pairs && c.Pairs == int64(len(r.episodes)*len(r.clips)):
			return nil
		case time.Since(r.started) > limitOfStudy:
			return fmt.Errorf("not all is researched after %s; see the logs in %s", limitOfStudy, r.stack.State())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}

// compare compares what was found with what was hidden.
func (r *study) compare(ctx context.Context) error {
	hits, worst := 0, int64(0)
	for e, key := range r.episodes {
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
