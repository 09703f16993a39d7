package sim

import (
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/ingest"
)

// delivered names a mail that is still pending, or whose result is not on its batch.
func (c *checker) delivered() error {
	if len(c.mails) > 0 {
		return fmt.Errorf("batches have pending mails: %v", c.mails)
	}
	if !c.w.s.mails {
		return nil
	}
	for id, b := range c.batches {
		report := b.Report == ""
		for _, m := range b.Mails {
			report = report || m.Kind == ingest.MailReport
			if m.Sent+len(m.Failed) != 2 || len(m.Failed) > 0 && m.Failed[0].Problem == "" {
				return fmt.Errorf("batch %s has the mail result %+v", id, m)
			}
			if err := c.sentTo(id, m); err != nil {
				return err
			}
		}
		if !report {
			return fmt.Errorf("batch %s has no result of its report's mail: %+v", id, b.Mails)
		}
	}
	for _, mail := range c.owed {
		id, kind, _ := strings.Cut(mail, " ")
		if b, there := c.batches[id]; !there || strings.HasPrefix(kind, string(ingest.MailQueued)) && b.HasEnded() {
			continue // deleted by a person; or the end of the batch came first (queue.TestMailsAreSentAtOnce)
		}
		if c.w.mailed[mail+" one"] == 0 {
			return fmt.Errorf("the mail %s was not sent", mail)
		}
	}
	return nil
}

// sentTo compares what a result says of the recipients with what they got.
func (c *checker) sentTo(id string, m ingest.MailResult) error {
	if len(m.To) != m.Sent {
		return fmt.Errorf("batch %s names %d of %d recipients of its %s", id, len(m.To), m.Sent, m.Kind)
	}
	for _, d := range slices.Concat(m.To, m.Failed) {
		got := 0
		for mail, n := range c.w.mailed {
			if strings.HasPrefix(mail, id+" "+string(m.Kind)+" ") && strings.HasSuffix(mail, " "+d.To) {
				got += n
			}
		}
		if d.Sent && got == 0 || d.To != "" && (d.At == 0 || d.Tries == 0 || d.Tries > m.Tries) {
			return fmt.Errorf("batch %s says %+v of a recipient of its %s, who got %d", id, d, m.Kind, got)
		}
	}
	return nil
}

// allRetired names what is left of completed batches after their retention has ended.
func (c *checker) allRetired() error {
	late := c.mayBeLate()
	for id, b := range c.batches {
		if b.State != ingest.BatchFailed && !late[id] {
			return fmt.Errorf("batch %s still exists, %s", id, b.State)
		}
	}
	for id, j := range c.jobs {
		if _, there := c.batches[j.Batch]; !there {
			return fmt.Errorf("job %s exists without its batch", id)
		}
	}
	return nil
}

// atRest names what has not ended, although it needs no dependency that refuses.
func (c *checker) atRest() error {
	late := c.mayBeLate()
	for _, id := range c.sorted() {
		j := c.jobs[id]
		if j.State.Open() && !late[id] {
			return fmt.Errorf("job %s is still %s (exec %d, parked %v; %s)", id, j.State, j.Exec, j.Parked,
				c.waitsFor())
		}
		if j.State == ingest.Deleted && j.HasSpace && !late[id] {
			return fmt.Errorf("job %s is Deleted, and still has its work files", id)
		}
		if n := c.w.store.versions(&j.Job); j.State == ingest.Completed && n != 1 {
			return fmt.Errorf("job %s is Completed with %d versions", id, n)
		}
	}
	for id, b := range c.batches {
		if b.State != ingest.BatchCompleted && b.State != ingest.BatchFailed && !late[id] {
			return fmt.Errorf("batch %s is still %s", id, b.State)
		}
	}
	for id := range c.w.store.files {
		if _, there := c.jobs[id]; !there {
			return fmt.Errorf("work files are left of job %s, which is deleted", id)
		}
	}
	if err := c.unfinished(); err != nil {
		return err
	}
	for id, r := range c.slots {
		if r.there && !late[id] {
			return fmt.Errorf("the slot of %s has no running job", id)
		}
	}
	for lock, owner := range c.locks {
		if !late[owner] {
			return fmt.Errorf("the lock %s is held by %s", lock, owner)
		}
	}
	for lock, line := range c.lines {
		for job := range line {
			if !late[job] {
				return fmt.Errorf("%s is in the line of %s", job, lock)
			}
		}
	}
	return nil
}
