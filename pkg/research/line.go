package research

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"archivist/pkg/kernel/table"
)

// The classes of places in the line of a project: the first part of a sort key. What follows is
//
//	ready#RANK           Media.order of the episode
//	closed#RANK          likewise
//	further#RANK         likewise
//	due#MS#KIND#ID       when a lease, or the deferral of an episode or clip, ends; its id or key
//	pending#MS#ID        when the work item of a lease leaves the queue
//
// Times are in milliseconds since 1970, with 13 digits, so that the order of the keys is that of
// the times.
const (
	ready   = "ready"   // episodes that may have a pair that is due, in order
	closed  = "closed"  // those that have none
	further = "further" // closed ones with pairs that have a result, and need those of others
	away    = "away"    // withdrawn, quarantined or deferred: no row in the line
	dueSK   = "due"     // ends of leases and of deferrals, by time
	pending = "pending" // work items in the queue, by the end of their time to live
)

// Behind the last places of closed and of ready episodes: "~" is greater than every digit of a
// rank. A walk that stands there has looked at all of them.
const (
	ended   = closed + "#~"
	counted = ready + "#~"
)

// linePK is the partition of the line. Its rows are read consistently: an index could lag behind
// the episodes, and then the first one would not be the one that the requirement names.
func linePK(project string) string { return "RESEARCHLINE#" + project }

// lineRow is a row in the line of a project. Its owner is the key of an episode or a clip, or the id of a lease.
type lineRow = table.Owned

// lineKey is the key of the row at a place of the line.
func lineKey(project, sk string) table.Key { return table.Key{PK: linePK(project), SK: sk} }

// dueKey is the place of an end, "" for none, at 0. kind is "lease", "episode" or "clip".
func dueKey(ms int64, kind, id string) string {
	if ms == 0 {
		return ""
	}
	return fmt.Sprintf("%s#%013d#%s#%s", dueSK, ms, kind, id)
}

// pendingKey is the place of a work item that waits in the queue until then.
func pendingKey(ms int64, id string) string {
	if ms == 0 {
		return ""
	}
	return fmt.Sprintf("%s#%013d#%s", pending, ms, id)
}

// places are the places of an episode in the line: its own, that of a pair that waits for further results, and the end
// of its deferral.
func (e *episodeRow) places() []string {
	return places(e.Place, e.Further, dueKey(e.media.Deferred, string(Episode), e.Name))
}

// places is the place of a clip in the line: the end of its deferral.
func (r *clipRow) places() []string { return places(dueKey(r.media.Deferred, string(Clip), r.Name)) }

// places are the places of a lease in the line: its end, and until when it waits in the queue.
func (r *leaseRow) places() []string {
	return places(dueKey(r.ends(), "lease", r.ID), pendingKey(r.waits(), r.ID))
}

// places are those of some places that there are.
func places(all ...string) []string {
	return slices.DeleteFunc(all, func(place string) bool { return place == "" })
}

// dueOf is when the assigner is to end what a row of the line is about, in milliseconds since 1970;
// 0 if the row is no end.
func dueOf(k table.Key) int64 {
	part := strings.SplitN(k.SK, "#", 4)
	if part[0] != dueSK || len(part) < 4 {
		return 0
	}
	ms, _ := strconv.ParseInt(part[1], 10, 64)
	return ms
}

// class is the kind of a place in the line: "away" for no place.
func class(place string) string {
	name, _, _ := strings.Cut(place, "#")
	return cmp.Or(name, away)
}

// rank is the order of an episode in the line, without its class: so a closed episode can be
// compared with one that is ready.
func rank(r *lineRow) string {
	_, order, _ := strings.Cut(r.SK, "#")
	return order
}

// belongs is where an episode belongs in the line, as sort keys: its place, "" if it is away; and again, if each of its
// pairs that is due has a result, and waits for those of others. It does not depend on the time: a lease or a deferral
// that is over counts until it has been ended.
func (e *episodeRow) belongs(cat *catalog) (place, again string, err error) {
	if !e.media.live() {
		return "", "", nil
	}

	taken, err := e.taken()
	if err != nil {
		return "", "", err
	}

	order := "#" + e.media.order()
	switch {
	case len(e.Leased) >= MaxLeases:
		return closed + order, "", nil
	case len(cat.due(roaring.Or(taken, e.waiting), 1)) > 0:
		return ready + order, "", nil
	case len(cat.due(taken, 1)) > 0:
		return closed + order, further + order, nil
	}
	return closed + order, "", nil
}
