package researchsim

import "archivist/test/adversary"

// mutant breaks one rule from outside, by a wrapper: the production code has no switches for it.
type mutant struct {
	name      string
	client    func(*actor, adversary.Client) adversary.Client
	revisions bool // the revisions of rows are not compared, so that the rule itself has to find it
}

var mutants = []mutant{}
