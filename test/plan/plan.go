// Package plan lists what is played by make check, make test, make test-more and make soak.
//
// A part is one command. Parts of one lane run one after another, lanes run side by side: the
// emulators mostly wait, so the simulations have the processors meanwhile. test/run plays them.
package plan

import (
	"fmt"
	"time"
)

// Set is what one target of the Makefile plays.
type Set string

// The sets. CI plays Test and More as one: a lane that is done with Test begins More.
const (
	Check Set = "check"     // before each commit
	Test  Set = "test"      // proves the product, while a person waits
	More  Set = "test-more" // everything else that CI plays
	Soak  Set = "soak"      // hours, by hand; its last result is in bench/SOAK.md
)

// Lane is what a part needs for itself.
type Lane string

// The lanes.
const (
	Process Lane = "process" // nothing but processors, all of them
	// Emulators is for what mostly waits, or takes one processor. One emulator runs at a time: two of them beside the
	// lane of the processors took longer together than one after the other, and functions reached their time-outs.
	Emulators Lane = "emulators"
)

// Part is one command.
type Part struct {
	Name string
	Lane Lane
	Env  []string // in addition to the environment
	// Command has words separated by spaces. $SEED is the first seed of the commit's own, $LATER
	// one that make test does not reach, $QUARTER which quarter of the mutants the commit plays: 0 to 3.
	Command string
	// Finds is what only this part can find.
	Finds string
	// Limit ends a part that hangs: ten times what it usually takes.
	Limit time.Duration
}

// Commit is what the parts depend on.
type Commit struct {
	Hash string // "" outside of a repository
}

// stride is how many seeds lie between the first seeds of two commits, at least.
const stride = 100_000

// number is the commit as a number of 32 bits.
func (c Commit) number() (n uint64) {
	if _, err := fmt.Sscanf(c.Hash[:min(8, len(c.Hash))], "%x", &n); err != nil {
		return 0
	}
	return n
}

// Seed is the first seed that the simulations of this commit play. So commits together cover
// what one cannot.
func (c Commit) Seed() uint64 { return 1 + c.number()*stride }

// Quarter is which mutants this commit plays.
func (c Commit) Quarter() int { return int(c.number() % 4) }

// Sets are the names of all sets.
func Sets() []Set { return []Set{Check, Test, More, Soak} }
