package envelope

// Retention classes of events.
const (
	// Permanent events are kept for ever: those of objects, versions and collections, of the
	// jobs that made them, and of the people who caused them.
	Permanent = "permanent"
	// Expiring events are removed from the table some time after they are in the archive.
	Expiring = "expiring"
	// Ephemeral events are soon removed.
	Ephemeral = "ephemeral"
)

// Snapshot is the type of events that say how something is now. They are made when a consumer
// is rebuilt, and are never stored.
const Snapshot = "snapshot"

// Kind is what all events of one type have in common. The table below is what a reader of the code
// looks up first: who may write what, about whom.
type Kind struct {
	Type    string // dotted, e.g. "job.state"
	Subject string // the type of its subjects
	Action  string // one of the actions, which filters name
	First   string // the action of the first event of a subject, if it is another
	Class   string // how long its events are kept
	Public  bool   // it is published outside of the system
	Schema  int    // the newest version of its payload, which is Detail, Before and After; from 1
}

// Kinds are all types of events. Only these can be written: event.Append refuses others. A
// type is never renamed or removed, because its rows stay.
var Kinds = []Kind{
	{"object.create", "Object", Create, "", Permanent, true, 2},
	{"object.modify", "Object", Modify, "", Permanent, true, 2},
	{"object.repair", "Object", Modify, "", Permanent, true, 1},
	{"version.create", "Version", Create, "", Permanent, true, 1},
	{"derivative.create", "Object", Add, "", Permanent, true, 1},

	{"file.disseminate", "File", Disseminate, "", Ephemeral, false, 1},

	{"job.state", "Job", Modify, Create, Permanent, true, 2},
	{"job.requeued", "Job", Modify, "", Permanent, true, 2},
	{"job.held", "Job", Modify, "", Permanent, true, 2},
	{"job.released", "Job", Modify, "", Permanent, true, 2},
	{"job.prioritized", "Job", Modify, "", Permanent, true, 2},
	{"job.preserved", "Job", Modify, "", Permanent, true, 2},
	{"job.cleaning", "Job", Modify, "", Permanent, true, 2},
	{"job.cleaned", "Job", Modify, "", Permanent, true, 2},
	{"job.continued", "Job", Modify, "", Permanent, false, 2},
	{"job.repaired", "Job", Modify, "", Permanent, false, 2},

	{"batch.state", "Batch", Modify, Create, Expiring, true, 2},
	{"batch.held", "Batch", Modify, "", Expiring, true, 2},
	{"batch.released", "Batch", Modify, "", Expiring, true, 2},
	{"batch.cancelled", "Batch", Modify, "", Expiring, true, 2},
	{"batch.repaired", "Batch", Modify, "", Expiring, false, 2},
	// A mail, and a profile, name recipients: neither is published.
	{"batch.mail", "Batch", Modify, "", Expiring, false, 1},

	{"collection.profile", "Collection", ModifyMetadata, Create, Permanent, false, 1},
	{"collection.held", "Collection", Modify, "", Permanent, true, 1},
	{"collection.released", "Collection", Modify, "", Permanent, true, 1},

	{"upload.opened", "Upload", Create, "", Expiring, true, 1},
	{"upload.submitted", "Upload", Modify, "", Expiring, true, 1},
	{"upload.expired", "Upload", Modify, "", Expiring, true, 1},
	{"upload.discarded", "Upload", Modify, "", Expiring, true, 1},
	{"upload.removed", "Upload", Delete, "", Expiring, true, 1},

	{"token.created", "Token", Create, "", Permanent, true, 1},
	{"token.revoked", "Token", Modify, "", Permanent, true, 1},

	{"queue.paused", "Queue", Modify, "", Expiring, true, 1},
	{"queue.resumed", "Queue", Modify, "", Expiring, true, 1},
	{"storage.paused", "Queue", Modify, "", Expiring, true, 1},
	{"storage.resumed", "Queue", Modify, "", Expiring, true, 1},

	{"epoch.raised", "Queue", Modify, "", Expiring, true, 1},

	{"operation.started", "Operation", Create, "", Expiring, true, 2},
	{"operation.done", "Operation", Modify, "", Expiring, true, 2},
	{"operation.interrupted", "Operation", Modify, "", Expiring, true, 2},
	{"operation.continued", "Operation", Modify, "", Expiring, true, 2},
	{"operation.repaired", "Operation", Modify, "", Expiring, false, 2},

	{"consumer.created", "Consumer", Create, "", Permanent, true, 1},
	{"consumer.changed", "Consumer", Modify, "", Permanent, true, 1},
	{"consumer.paused", "Consumer", Modify, "", Permanent, true, 1},
	{"consumer.resumed", "Consumer", Modify, "", Permanent, true, 1},
	{"consumer.run", "Consumer", Modify, "", Permanent, true, 1},
	{"consumer.skipped", "Consumer", Modify, "", Permanent, true, 1},
	{"consumer.reset", "Consumer", Modify, "", Permanent, true, 1},
	{"consumer.redriven", "Consumer", Modify, "", Permanent, true, 1},
	{"consumer.discarded", "Consumer", Modify, "", Permanent, true, 1},
	{"consumer.deleted", "Consumer", Delete, "", Permanent, true, 1},
	{"consumer.replayed", "Consumer", Modify, "", Permanent, true, 1},
	{"consumer.rebuilt", "Consumer", Modify, "", Permanent, true, 1},
	{"consumer.replay-done", "Consumer", Modify, "", Permanent, true, 1},
	{"consumer.replay-cancelled", "Consumer", Modify, "", Permanent, true, 1},

	{"item.create", "ComponentItem", Create, "", Permanent, true, 1},
	{"item.change", "ComponentItem", Modify, "", Permanent, true, 1},
	{"item.forget", "ComponentItem", Delete, "", Permanent, true, 1},
	{"item.event", "ComponentItem", Modify, "", Permanent, true, 1},
	{"item.revoke", "ComponentItem", Modify, "", Permanent, true, 1},
	{"item.prioritize", "ComponentItem", Modify, "", Permanent, true, 1},
	{"item.release", "ComponentItem", Modify, "", Permanent, true, 1},
	{"component.ran", "ComponentItem", Modify, "", Permanent, true, 1},

	{"component.created", "Component", Create, "", Permanent, true, 1},
	{"component.changed", "Component", Modify, "", Permanent, true, 1},
	{"component.paused", "Component", Modify, "", Permanent, true, 1},
	{"component.resumed", "Component", Modify, "", Permanent, true, 1},
	{"component.deleted", "Component", Delete, "", Permanent, true, 1},

	{"project.applied", "ResearchProject", Modify, Create, Permanent, true, 1},
	{"project.paused", "ResearchProject", Modify, "", Permanent, true, 1},
	{"project.resumed", "ResearchProject", Modify, "", Permanent, true, 1},
	{"project.researcher-paused", "ResearchProject", Modify, "", Permanent, true, 1},
	{"project.researcher-resumed", "ResearchProject", Modify, "", Permanent, true, 1},

	{"episode.curated", "Episode", Modify, Create, Permanent, true, 1},
	{"episode.withdrawn", "Episode", Modify, "", Permanent, true, 1},
	{"episode.researched", "Episode", Modify, "", Permanent, true, 1},
	{"episode.deferred", "Episode", Modify, "", Permanent, true, 1},
	{"episode.set-aside", "Episode", Modify, "", Permanent, true, 1},
	{"episode.differs", "Episode", Modify, "", Permanent, true, 1},
	{"episode.decided", "Episode", Modify, "", Permanent, true, 1},
	{"episode.reviewed", "Episode", Modify, "", Permanent, true, 1},
	{"episode.retried", "Episode", Modify, "", Permanent, true, 1},

	{"clip.curated", "Clip", Modify, Create, Permanent, true, 1},
	{"clip.withdrawn", "Clip", Modify, "", Permanent, true, 1},
	{"clip.deferred", "Clip", Modify, "", Permanent, true, 1},
	{"clip.set-aside", "Clip", Modify, "", Permanent, true, 1},
	{"clip.retried", "Clip", Modify, "", Permanent, true, 1},

	{"lease.created", "ResearchLease", Create, "", Expiring, true, 1},
	{"lease.accepted", "ResearchLease", Modify, "", Expiring, true, 1},
	{"lease.extended", "ResearchLease", Modify, "", Expiring, true, 1},
	{"lease.ended", "ResearchLease", Delete, "", Expiring, true, 1},

	{"archive.added", "Archive", Create, "", Permanent, true, 1},
	{"archive.changed", "Archive", Modify, "", Permanent, true, 1},
	{"archive.paused", "Archive", Modify, "", Permanent, true, 1},
	{"archive.resumed", "Archive", Modify, "", Permanent, true, 1},
	{"archive.stopped", "Archive", Modify, "", Permanent, true, 1},
	{"archive.backfilled", "Archive", Modify, "", Permanent, true, 1},
	{"archive.deleted", "Archive", Delete, "", Permanent, true, 1},

	{"revision.notified", "Revision", Create, "", Permanent, true, 1},
	{"revision.skipped", "Revision", Modify, Create, Permanent, true, 1},
	{"revision.committed", "Revision", Modify, "", Permanent, true, 1},

	{"task.planned", "Task", Create, "", Permanent, true, 1},
	{"task.state", "Task", Modify, "", Permanent, true, 1},
	{"task.told", "Task", Modify, "", Permanent, true, 1},
}

// kinds are Kinds by their types.
var kinds = func() map[string]Kind {
	m := map[string]Kind{}
	for _, k := range Kinds {
		m[k.Type] = k
	}
	return m
}()

// KindOf is the kind of a type of events; known is false if there is none.
func KindOf(eventType string) (k Kind, known bool) {
	k, known = kinds[eventType]
	return k, known
}

// deleted is the state in which a job or a batch is no more.
const deleted = "Deleted"

// Deletes reports whether an event of this kind can be the deletion of its subject: see ActionOf.
func (k Kind) Deletes() bool { return k.Type == "job.state" || k.Type == "batch.state" }

// ActionOf is the action of an event of this kind, by the version of its subject and the state that
// it left the subject in, "" for none. It is not in the event's row: filters see what the present
// release says.
func (k Kind) ActionOf(version int64, state string) string {
	switch {
	case version == 1 && k.First != "":
		return k.First
	case state == deleted:
		return Delete
	}
	return k.Action
}

// Site is the log of the events that belong to no collection.
const Site = "site"

// Log is the name of the log in which an event has its place: the collection among its parents, or
// its subject if that is a collection, else Site. It follows from what is stored, so that it is the
// same whenever the event is placed.
func (e Event) Log() string {
	if e.Subject.Type == collection {
		return e.Subject.ID
	}
	for _, p := range e.Parents {
		if p.Type == collection {
			return p.ID
		}
	}
	return Site
}

// collection is the type of the subjects that have logs of their own.
const collection = "Collection"
