package console

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// need is something that needs a person.
type need struct {
	What    string // in a sentence
	Since   string // "" if that is not known
	Tone    string
	To      string // the page, below /console/; "" = there is none yet
	Command string // that shows more
}

// home is the first page.
type home struct {
	Reads   bool // the visitor has a role by which there is something to read
	Empty   bool // it was read that nothing was submitted yet
	Needs   []need
	Unread  []need // what could not be looked at, and why
	Queue   *v1.Queue
	Batches []v1.Batch
	Waiting []gateCount
	Day     *activity // of the whole archive; nil if it was not read
}

// gateCount is how many jobs wait at a gate.
type gateCount struct {
	Gate  string
	Count int
	More  bool // than that
	Says  string
}

// gates are the places where jobs wait, in the order in which a job comes to them.
var gates = []gateCount{
	{Gate: "pending", Says: "wait to start"},
	{Gate: "provisioning", Says: "wait for work space"},
	{Gate: "parked", Says: "wait for what another job holds"},
	{Gate: "held", Says: "wait for a person"},
}

// mostRecent is how many batches the first page shows.
const mostRecent = 10

// showHome shows what needs a person now. What cannot be read is said, and does not keep the rest from being shown.
func (c *Console) showHome(v *visit) (view, error) {
	if !v.reads() {
		return view{Title: "Home", Body: home{}, Still: true, Command: "archivist whoami"}, nil
	}
	h := home{Reads: true, Empty: true}
	command := "archivist batch list"
	if v.may(access.Viewer) {
		command = "archivist status"
		h.whole(v)
		h.latest(v, "")
	} else {
		h.own(v)
	}
	return view{Title: "Home", Body: h, Command: command,
		Said: terminal.Count(len(h.Needs), "thing") + " for a person to look at."}, nil
}

// mostOwn is of how many collections of a depositor the first page shows what happens.
const mostOwn = 5

// own adds what is of the collections of a depositor.
func (h *home) own(v *visit) {
	own := v.is.Of(access.Depositor)
	if len(own) > mostOwn {
		h.unread(fmt.Sprintf("this page looks at the first %d of your collections; choose another "+
			"in the lists of batches and jobs: %s", mostOwn, strings.Join(own[mostOwn:], ", ")), "")
		own = own[:mostOwn]
	}
	for _, name := range own {
		failed, err := v.api.JobPage(v.Context(), v1.Filter{State: v1.Failed, Collection: name}, "")
		h.add(err, "failed jobs of "+name, needOfJobs(name, failed))
		h.latest(v, name)
	}
	slices.SortStableFunc(h.Batches, func(a, b v1.Batch) int { return strings.Compare(b.ID, a.ID) }) // newest first
	h.Batches = h.Batches[:min(len(h.Batches), mostRecent)]
}

// latest adds the latest batches of a collection; "" = of all.
func (h *home) latest(v *visit, collection string) {
	page, err := pageOf[v1.Batch](v, parts("batches"), "", "collection", collection, "limit", strconv.Itoa(mostRecent))
	h.add(err, strings.TrimSpace("batches "+collection), nil)
	h.Batches = append(h.Batches, page.Items...)
	h.Empty = h.Empty && err == nil && len(page.Items) == 0
}

// whole adds what is of the whole archive.
func (h *home) whole(v *visit) {
	status, err := v.api.Attention(v.Context())
	h.add(err, "the status", nil)
	for _, s := range status.Sections {
		h.section(s)
	}
	if q := status.Queue; q != nil {
		// A section says if that is long ago; else the page would change each minute.
		q.LastSweep = ""
		h.Queue, h.Waiting = q, waitingOf(*q)
	}
	h.Day, err = activityOf(v)
	h.add(err, "the last 24 hours", nil)
}

// section adds what needs a person in a section of the status.
func (h *home) section(s v1.StatusSection) {
	if s.State == v1.SectionUnavailable {
		h.unread(s.Name+": "+s.Summary, "")
	}
	for _, line := range s.Lines {
		if !line.Attention {
			continue
		}
		n := need{What: line.Text, Since: line.Since, Tone: "bad",
			To:      cmp.Or(pageOfCommand(line.Command), pageOfCommand(s.Command)),
			Command: cmp.Or(line.Command, s.Command)}
		switch {
		case s.Name == "research": // a decision is due, and nothing is wrong
			n.What, n.Tone = number(line.Count)+" in "+line.Text, "warn"
		case line.Count > 1:
			n.What = number(line.Count) + " times: " + line.Text
			if s.Cut != "" { // not all was read
				n.What = "at least " + n.What
			}
		}
		if s.Name == "holds" || s.Name == "waiting" {
			n.Tone = "warn"
		}
		h.Needs = append(h.Needs, n)
	}
	if s.Cut != "" && s.State != v1.SectionOK {
		h.unread(s.Name+": "+s.Cut, s.Command)
	}
}

// unread says what was not read. The page of the command, if there is one, shows all of it.
func (h *home) unread(what, command string) {
	h.Unread = append(h.Unread, need{What: what, To: pageOfCommand(command)})
}

// add adds needs, or says that something could not be read.
func (h *home) add(err error, of string, needs []need) {
	if err != nil {
		why := "the log of the API has the cause"
		if fault.Of(err) != "" {
			why = err.Error()
		}
		h.unread(of+": "+why, "")
		return
	}
	h.Needs = append(h.Needs, needs...)
}

// needOfJobs is that of the failed jobs of a collection, of which a page was read.
func needOfJobs(collection string, page v1.List[v1.Job]) []need {
	n := len(page.Items)
	if n == 0 {
		return nil
	}
	more := ""
	if page.Cursor != "" {
		more = "at least "
	}
	return []need{{What: more + terminal.Count(n, "job") + " of " + collection + " failed", Tone: "bad",
		To:      "jobs?" + query("state", v1.Failed, "collection", collection),
		Command: "archivist job list --state failed -c " + quoted(collection)}}
}

// waitingOf is how many jobs wait at each gate.
func waitingOf(q v1.Queue) (all []gateCount) {
	for _, g := range gates {
		g.Count, g.More = q.Waiting[g.Gate], slices.Contains(q.MoreThan, g.Gate)
		all = append(all, g)
	}
	return all
}

// working reports whether a batch or a job changes by itself: it has not ended, and waits for no person.
func working(state string) bool { return !v1.Ended(state) && state != v1.Held }
