package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"archivist/localstack"
	v1 "archivist/pkg/api/v1"
)

// The sample of an archive.
const (
	sampleArchive = "book"
	sampleCommits = 10
	limitOfSample = 5 * time.Minute
)

// book is the sample of an archive under way.
type book struct {
	*localstack.Repository
	stack   *localstack.Stack
	client  *v1.Client
	url     string
	started time.Time
}

// revisions commits ten times to a repository, notifies the commits in random order, and shows the tasks that they
// start until all have ended.
func revisions(ctx context.Context, s *localstack.Stack) error {
	o, err := s.Load()
	if err != nil {
		return errDown
	}
	ctx, cancel := context.WithTimeout(ctx, limitOfSample)
	defer cancel()
	_, err = exec.LookPath("git")
	if err != nil {
		return errors.New("git is not installed; this sample needs it")
	}
	err = startSources(ctx, s)
	if err != nil {
		return err
	}
	b := &book{stack: s, client: &v1.Client{URL: o.APIURL, HTTP: http.DefaultClient, User: "make-revisions"},
		url: sourcesURL(s) + "/git/" + sampleArchive + ".git", started: time.Now()}
	b.Repository, err = localstack.NewRepository(ctx, s.State("repositories", sampleArchive+".git"))
	if err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{b.register, b.notify, b.quiet, b.check, b.byHand, b.draw} {
		err = step(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *book) register(ctx context.Context) error {
	_, err := b.client.PutArchive(ctx, sampleArchive, v1.ArchiveDefinition{Title: "A book of ten chapters",
		Location: v1.ArchiveLocation{Kind: "git", URL: b.url, Branch: "main"}, Baseline: 1})
	return err
}

// notify makes the commits, and then notifies them in another order. What tasks commit is notified by a hook.
func (b *book) notify(ctx context.Context) error {
	hook := filepath.Join(b.Bare, "hooks", "post-receive")
	err := os.RemoveAll(hook)
	if err != nil {
		return err
	}
	notices, err := b.commits(ctx)
	if err != nil {
		return err
	}
	err = os.WriteFile(hook, fmt.Appendf(nil, hookOfSample, b.client.URL, sampleArchive), 0o755)
	if err != nil {
		return err
	}
	rand.Shuffle(len(notices), func(i, j int) { notices[i], notices[j] = notices[j], notices[i] })
	for _, notice := range notices {
		b.say("%s/%d: notified", sampleArchive, notice.Revision)
		_, err = b.client.NotifyRevision(ctx, sampleArchive, notice, "")
		if err != nil {
			return err
		}
	}
	return nil
}

// commits makes the commits.
func (b *book) commits(ctx context.Context) (notices []v1.RevisionNotice, err error) {
	before, err := b.Revisions(ctx)
	for n := before + 1; n <= before+sampleCommits && err == nil; n++ {
		var hash string
		hash, err = b.commit(ctx, n)
		notices = append(notices, v1.RevisionNotice{Revision: n, Transaction: hash})
	}
	return notices, err
}

// commit commits a chapter and, at first, what else there is.
func (b *book) commit(ctx context.Context, n int64) (hash string, err error) {
	files := map[string]string{}
	if n == 1 {
		files, err = localstack.ArchiveFiles(b.url)
	} else {
		err = b.Pull(ctx)
	}
	if err != nil {
		return "", err
	}
	path, text := localstack.Chapter(n)
	files[path] = text
	return b.Commit(ctx, fmt.Sprintf("Chapter %d", n), files)
}

// hookOfSample notifies each push, which has one commit. docs/revisions.md has one for every case.
const hookOfSample = `#!/bin/sh
while read -r old new ref; do
  n=$(git rev-list --count --first-parent "$new")
  curl -sS --max-time 30 -H 'Content-Type: application/json' -d "{\"revision\": $n, \"transaction\": \"$new\"}" \
    '%s/v1/archives/%s/revisions' </dev/null >/dev/null 2>&1 &
done
`

func (b *book) say(format string, args ...any) {
	fmt.Printf("%4d s  %s\n", int(time.Since(b.started).Seconds()), fmt.Sprintf(format, args...))
}

// quiet shows the tasks until all commits are planned and all their tasks have ended. While a task commits, its
// commit is notified a moment later.
func (b *book) quiet(ctx context.Context) error {
	for {
		err := archivist(ctx, b.stack, "archive", "watch", sampleArchive)
		if err != nil {
			return err
		}
		commits, err := b.Revisions(ctx)
		if err != nil {
			return err
		}
		status, err := b.client.Archive(ctx, sampleArchive)
		if err != nil || status.Watermark == commits && len(status.Open) == 0 {
			return err
		}
	}
}

// check checks that the tasks have done what they are for, and fetches the book.
func (b *book) check(ctx context.Context) error {
	commits, err := b.checkIndex(ctx)
	if err != nil {
		return err
	}
	builds, err := b.tasks(ctx, "build-PDF")
	if err != nil {
		return err
	}
	counts := map[string]int{}
	for _, t := range builds {
		counts[t.State]++
	}
	newest := builds[len(builds)-1]
	if newest.Revision != commits || newest.State != "succeeded" {
		return fmt.Errorf("%s is %s; expected that the newest book is built", newest.ID, newest.State)
	}
	data, err := b.output(ctx, newest.ID, "book.pdf")
	if err != nil {
		return err
	}
	fmt.Printf("\nAll %d commits were indexed, in order. Builds: %d superseded by newer ones, %d succeeded.\n", commits,
		counts["superseded"], counts["succeeded"])
	return b.keep("book.pdf", data)
}

// checkIndex checks that all commits were indexed, each after the one before, and returns how many there are.
func (b *book) checkIndex(ctx context.Context) (int64, error) {
	commits, err := b.Revisions(ctx)
	if err != nil {
		return 0, err
	}
	indexed, err := b.tasks(ctx, "indexing")
	if err == nil && len(indexed) != int(commits) {
		err = fmt.Errorf("%d of %d commits have the task indexing", len(indexed), commits)
	}
	for i, t := range indexed {
		if t.State != "succeeded" || i > 0 && t.Since < indexed[i-1].Since {
			err = fmt.Errorf("%s is %s since %s; expected that each commit is indexed after the one before",
				t.ID, t.State, t.Since)
		}
	}
	return commits, err
}

// tasks are the tasks of a name, by their revisions.
func (b *book) tasks(ctx context.Context, name string) ([]v1.Task, error) {
	all, err := b.client.Tasks(ctx, sampleArchive, v1.TaskFilter{Task: name})
	slices.Reverse(all)
	return all, err
}

// output is a file that a task has left.
func (b *book) output(ctx context.Context, id, path string) ([]byte, error) {
	content, err := b.client.TaskOutput(ctx, id, 0, path)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return io.ReadAll(content)
}

// keep writes a file where people find it.
func (b *book) keep(name string, data []byte) error {
	at := b.stack.State("revisions", name)
	err := os.MkdirAll(filepath.Dir(at), 0o755)
	if err == nil {
		err = os.WriteFile(at, data, 0o644)
	}
	if err == nil {
		fmt.Println("Wrote", at)
	}
	return err
}

// byHand runs the check of the night, which no commit starts.
func (b *book) byHand(ctx context.Context) error {
	fmt.Println("The check of the night, by hand:")
	return archivist(ctx, b.stack, "task", "run", sampleArchive, "nightly-check", "--wait")
}

// draw draws the newest revision that commits have planned.
func (b *book) draw(ctx context.Context) error {
	n, err := b.Revisions(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(b.stack.Root, "dist", "archivist"), "revision", "graph",
		fmt.Sprintf("%s/%d", sampleArchive, n), "--format", "svg")
	cmd.Stderr = os.Stderr
	picture, err := cmd.Output()
	if err != nil {
		return err
	}
	return b.keep("graph.svg", picture)
}
