package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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

// book is the sample of an archive under way: the repository, and what is needed to act on what is up.
type book struct {
	*localstack.Repository
	root   string // of the checkout
	state  string // the folder of what is up
	client *v1.Client
	// url is that from which the archive reads, and to which its tasks push.
	url     string
	token   string // of the hook; "" = it needs none
	started time.Time
}

// revisions commits ten times to a repository, notifies the commits in random order, and shows the tasks that
// they start until all have ended. Repeated, it adds ten more. It ends after limitOfSample.
func revisions(ctx context.Context, s *localstack.Stack) error {
	o, err := up(s.Root)
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, limitOfSample)
	defer cancel()
	_, err = exec.LookPath("git")
	if err != nil {
		return errors.New("git is not installed; this sample needs it")
	}

	// A demo serves repositories itself.
	if o.Control == "" {
		err = startSources(ctx, s)
	}

	if err != nil {
		return err
	}

	b := &book{
		root:    s.Root,
		state:   o.State,
		started: time.Now(),
		client:  o.Client("make-revisions"),
		url:     o.SampleURL + "/git/" + sampleArchive + ".git",
	}

	b.token, err = tokenFor(ctx, s, o, "hook-of-"+sampleArchive, "notifier:"+sampleArchive)
	if err != nil {
		return err
	}

	b.Repository, err = localstack.NewRepository(ctx,
		filepath.Join(o.State, "repositories", sampleArchive+".git"))
	if err != nil {
		return err
	}

	// Each step needs what the ones before have made.
	for _, step := range []func(context.Context) error{b.register, b.notify, b.quiet, b.check,
		b.byHand, b.draw} {
		err = step(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// register makes the repository an archive, from its first commit on.
func (b *book) register(ctx context.Context) error {
	_, err := b.client.PutArchive(ctx, sampleArchive, v1.ArchiveDefinition{
		Title:    "A book of ten chapters",
		Location: v1.ArchiveLocation{Kind: "git", URL: b.url, Branch: "main"},
		Baseline: 1,
	})
	return err
}

// notify makes the commits, and then notifies them in another order: the queue has to plan them in theirs. What
// tasks commit is notified by a hook, which is put there only after the commits, since it would notify them in
// order.
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

	err = os.WriteFile(hook, fmt.Appendf(nil, hookOfSample, b.authorization(), b.client.URL,
		sampleArchive), 0o755)
	if err != nil {
		return err
	}

	// As notices come from several servers, or late.
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

// authorization is the option of curl with the token of the hook, and a blank; "" if it needs none.
func (b *book) authorization() string {
	if b.token == "" {
		return ""
	}
	return "-H 'Authorization: Bearer " + b.token + "' "
}

// commits makes the commits, and returns what there is to notify. Other commits may be there from an earlier
// run.
func (b *book) commits(ctx context.Context) (notices []v1.RevisionNotice, err error) {
	before, err := b.Revisions(ctx)
	if err != nil {
		return nil, err
	}

	for n := before + 1; n <= before+sampleCommits; n++ {
		hash, err := b.commit(ctx, n)
		if err != nil {
			return nil, err
		}
		notices = append(notices, v1.RevisionNotice{Revision: n, Transaction: hash})
	}
	return notices, nil
}

// commit commits a chapter and, at first, what else there is. Before later ones it takes over what tasks have
// pushed.
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

// hookOfSample notifies each push, which has one commit. It does not wait for the API, since git waits for the
// hook. docs/revisions.md has one for every case.
const hookOfSample = `#!/bin/sh
while read -r old new ref; do
  n=$(git rev-list --count --first-parent "$new")
  curl -sS --max-time 30 %s-H 'Content-Type: application/json' -d "{\"revision\": $n, \"transaction\": \"$new\"}" \
    '%s/v1/archives/%s/revisions' </dev/null >/dev/null 2>&1 &
done
`

// say says something with the seconds since the start.
func (b *book) say(format string, args ...any) {
	fmt.Printf("%4d s  %s\n", int(time.Since(b.started).Seconds()), fmt.Sprintf(format, args...))
}

// quiet shows the tasks until all commits are planned and all their tasks have ended. While a task commits, its
// commit is notified a moment later: so the archive can be quiet before that, and is looked at again.
func (b *book) quiet(ctx context.Context) error {
	for {
		err := archivist(ctx, b.root, "archive", "show", sampleArchive, "--watch")
		if err != nil {
			return err
		}

		commits, err := b.Revisions(ctx)
		if err != nil {
			return err
		}

		// Only if nothing was committed meanwhile is it over.
		status, err := b.client.Archive(ctx, sampleArchive)
		if err != nil || status.Watermark == commits && len(status.Open) == 0 {
			return err
		}
	}
}

// check checks that the tasks have done what they are for, and fetches the book: of the builds, only the newest
// has to have succeeded.
func (b *book) check(ctx context.Context) error {
	commits, err := b.checkIndex(ctx)
	if err != nil {
		return err
	}

	// Of these, an older one may be superseded by a newer one, at any time.
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
		return fmt.Errorf("%s is %s; expected that the newest book is built", newest.ID,
			newest.State)
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
// Times of the API are in UTC and of one form, so they are compared as texts.
func (b *book) checkIndex(ctx context.Context) (int64, error) {
	commits, err := b.Revisions(ctx)
	if err != nil {
		return 0, err
	}

	// Each commit has this task, and they run one after the other.
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

// tasks are the tasks of a name, the oldest revision first.
func (b *book) tasks(ctx context.Context, name string) ([]v1.Task, error) {
	all, err := b.client.Tasks(ctx, sampleArchive, v1.TaskFilter{Task: name})
	slices.Reverse(all)
	return all, err
}

// output is a file that the newest attempt of a task has left.
func (b *book) output(ctx context.Context, id, path string) ([]byte, error) {
	content, err := b.client.TaskOutput(ctx, id, 0, path)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return io.ReadAll(content)
}

// keep writes a file where people find it, and says where.
func (b *book) keep(name string, data []byte) error {
	at := filepath.Join(b.state, "revisions", name)
	err := os.MkdirAll(filepath.Dir(at), 0o755)
	if err != nil {
		return err
	}

	err = os.WriteFile(at, data, 0o644)
	if err != nil {
		return err
	}

	fmt.Println("Wrote", at)
	return nil
}

// byHand runs the check of the night, which no commit starts, and waits for its end.
func (b *book) byHand(ctx context.Context) error {
	fmt.Println("The check of the night, by hand:")
	return archivist(ctx, b.root, "archive", "task", "run", sampleArchive, "nightly-check", "--watch")
}

// draw draws the newest revision, by the command line.
func (b *book) draw(ctx context.Context) error {
	n, err := b.Revisions(ctx)
	if err != nil {
		return err
	}

	cmd := exec.CommandContext(ctx, filepath.Join(b.root, "dist", "archivist"), "archive", "revision", "graph",
		fmt.Sprintf("%s/%d", sampleArchive, n), "--format", "svg")
	cmd.Stderr = os.Stderr
	picture, err := cmd.Output()
	if err != nil {
		return err
	}
	return b.keep("graph.svg", picture)
}
