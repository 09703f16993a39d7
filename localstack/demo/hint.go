package demo

import (
	"strings"
	"time"
)

// Hint says where everything is, and what to try next. If commands of this folder find another Archivist, it
// says how they find this one.
func (d *Demo) Hint(took time.Duration) {
	// Each of these lines is there only if it is needed.
	find := ""
	if !d.published {
		find = "  export ARCHIVIST_API=" + d.APIURL +
			"    # commands of this folder find another Archivist\n"
	}

	// Said each time, so that nobody takes a demo for an archive.
	kept := "It is all in memory, and gone when the demo ends."
	if d.state.kept {
		kept = "Its state is in " + d.state.dir +
			": for going on tomorrow, not for what must not be lost."
	}

	// With an issuer nothing else works before.
	sign := ""
	if d.Issuer != nil {
		sign = "  dist/archivist login                   choose who you are; it asks for no password\n"
	}

	d.say(strings.TrimSuffix(`
Archivist is up, after %.1f seconds. Mails appear here; logs are in %s.
  %s         the API
  %s/docs    its documents
  %s/console/    the console, in a browser

Next, in another terminal:
%s%s  dist/archivist queue
  dist/archivist object list -c sample
  dist/archivist submit FOLDER -c demo   preserve files of your own
  dist/archivist demo function NAME COMMAND
                                         a component or a consumer of your own
  make research; make revisions          clips in recordings; tasks for commits

%s Ctrl-C ends it.
`, "\n"), took.Seconds(), d.state.log.Name(), d.APIURL, d.APIURL, d.APIURL, find, sign, kept)
}
