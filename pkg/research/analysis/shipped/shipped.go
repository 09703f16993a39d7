// Package shipped has the analyses that there are.
package shipped

import (
	"archivist/pkg/research/analysis"
	"archivist/pkg/research/correlate"
)

// Analyses are the analyses that there are, by the name that a project configures.
var Analyses = map[string]analysis.Analysis{
	correlate.Name: correlate.Analysis{},
}
