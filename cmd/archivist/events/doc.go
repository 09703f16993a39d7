// Package events has the commands on the log of events, on consumers of events, and on replays.
//
// An event is named by its subject and its number among the events of that. The type of a subject may be left
// out where its id shows it. A place in the log is a partition and a number in it.
//
// A consumer is defined by a file that replaces the whole definition; actions on it, e.g. on its parked events,
// are orders that its next run carries out. A replay is a thing of its own with an id: it goes on when the
// command that follows it ends, and what fails in it is not parked, so a failed one is a failure of the command.
package events
