// Command run plays the tests of a set, such as "test" of make test: it shows what runs now, how
// long each part took, and how many tests passed and failed. Of several sets, a lane begins the next
// one without waiting for the others.
//
//	go run ./test/run test
//	go run ./test/run -only vet,templates test
//	go run ./test/run test test-more
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"archivist/test/plan"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: run [-only PART,…] [-list] SET…; sets are check, test, test-more, soak")

func command(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	only := flags.String("only", "", "names of parts, separated by commas")
	list := flags.Bool("list", false, "print the parts and their commands")
	if err := flags.Parse(args); err != nil || flags.NArg() == 0 {
		return errUsage
	}
	commit := head(ctx)
	var all []plan.Part
	for _, set := range flags.Args() {
		if !slices.Contains(plan.Sets(), plan.Set(set)) {
			return errUsage
		}
		all = append(all, plan.Of(plan.Set(set), commit)...)
	}
	parts, err := chosen(all, *only)
	if err != nil {
		return err
	}
	if *list {
		for _, p := range parts {
			fmt.Printf("%-30s %-10s %s\n", p.Name, p.Lane, p.Command)
		}
		return nil
	}

	p := newPlayer(os.Stdout, parts)
	began := time.Now()
	results := p.play(ctx)
	return report(os.Stdout, flags.Args(), commit, results, time.Since(began))
}

// chosen returns the parts with the names in only, or all.
func chosen(parts []plan.Part, only string) ([]plan.Part, error) {
	if only == "" {
		return parts, nil
	}
	var out []plan.Part
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(parts, func(p plan.Part) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no part %q; -list prints them", name)
		}
		out = append(out, parts[i])
	}
	return out, nil
}
