package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"archivist/test/plan"
)

// head is the commit that is checked out.
func head(ctx context.Context) plan.Commit {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
	if err != nil {
		return plan.Commit{}
	}
	return plan.Commit{Hash: strings.TrimSpace(string(out))}
}

// report prints what failed, how long each part took, and the counts. It returns an error if a part failed.
func report(out io.Writer, sets []string, c plan.Commit, results []result, took time.Duration) error {
	failed := 0
	for _, r := range results {
		if r.err != nil {
			failed++
			fmt.Fprintf(out, "\n=== %s: %v (all of its output is in %s)\n%s", r.part.Name, r.err, logs, r.failure)
		}
	}
	fmt.Fprintf(out, "\n%s\n", table(results))
	var all counts
	for _, r := range results {
		all = all.plus(r.counts)
	}
	if slices.Contains(sets, string(plan.Soak)) {
		if err := os.WriteFile("bench/SOAK.md", []byte(soaked(c, results, all, took, time.Now())), 0o644); err != nil {
			return err
		}
	}
	played := strings.Join(sets, " ")
	fmt.Fprintf(out, "make %s of %.8s: %d parts in %s, %d failed\n%s\n", played, c.Hash, len(results),
		took.Round(time.Second), failed, all)
	if failed > 0 {
		return fmt.Errorf("make %s: %d parts failed", played, failed)
	}
	return nil
}

// table has a line for each part, in the order in which they ended.
func table(results []result) string {
	var b strings.Builder
	b.WriteString("| part | lane | seconds | seconds of processors | passed | failed | skipped |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		name := r.part.Name
		if r.err != nil {
			name += " (FAILED)"
		}
		fmt.Fprintf(&b, "| %s | %s | %.0f | %.0f | %d | %d | %d |\n", name, r.part.Lane, r.took.Seconds(),
			r.cpu.Seconds(), r.counts.passed, r.counts.failed, r.counts.skipped)
	}
	return b.String()
}

// soaked is the text of bench/SOAK.md.
func soaked(c plan.Commit, results []result, all counts, took time.Duration, now time.Time) string {
	var b strings.Builder
	b.WriteString("# The last soak\n\n`make soak` plays what takes too long for each commit. It writes this file.\n\n")
	fmt.Fprintf(&b, "%s, commit %.12s: %d parts in %s; %s.\n\n%s", now.UTC().Format("2006-01-02"), c.Hash,
		len(results), took.Round(time.Minute), all, table(results))
	b.WriteString("\n| part | command |\n|---|---|\n")
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | `%s` |\n", r.part.Name, r.part.Command)
	}
	return b.String()
}
