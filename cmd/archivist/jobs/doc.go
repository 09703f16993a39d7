// Package jobs has the commands on the ingest of content: submissions and their batches, jobs, the profiles of
// collections, manifests, the queue, the storage, holds, and the operations on many jobs.
//
// An action of a person is one request with an idempotency key: it has the name of its command, a reason that
// the events keep, and perhaps a dry run (action.go). The archive says which action usually follows, and whether
// one needs a confirmation; the command to be pasted is made here, so that it has the flags of the user.
//
// What acts on many jobs is an operation of the archive, which goes on when the command has ended (bulk.go,
// operation.go). A command on jobs selects them either by one id or by flags, never both.
//
// Commands that follow something fail with the exit code of a conflict if what they follow fails, so that
// scripts can stop there (watch.go). An interrupt ends only the command: nothing in the archive is stopped by
// ^C.
//
// A manifest is checked by the rules of the archive before it is submitted, and offline by batch
// check-manifest (check.go, manifest.go). What this computer cannot reach is left to the archive, with a warning.
package jobs
