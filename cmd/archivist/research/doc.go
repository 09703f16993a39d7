// Package research has the commands on research projects, and the researcher that works for one on this
// computer.
//
// A project looks for clips in episodes: both are recordings that curators name, by files (media.go) or by
// podcast feeds (feeds.go). A pair of an episode and a clip is researched by whoever has a lease on it
// (view.go); what is found are offsets, which can be exported for players and editors.
//
// The researcher is the only command that works on its own: it takes leases, downloads recordings, and reports
// results until it is stopped (researcher.go).
package research
