// Package objects has the commands on what is preserved: objects, their versions and files, their record, their
// fixity, and the statistics of collections.
//
// An ARK is accepted in any of its forms, and a version is the newest unless it is named: it is determined once for
// a command, so that all of its requests are about the same one.
//
// A download is verified file by file against the digests of the version, and a file gets its name only then
// (get.go). Names that the file system cannot hold are replaced (names.go), and listed beside the files.
//
// A reindex is driven from this computer, in parts with a progress of their own that is kept in a file, so that
// it can be interrupted and resumed (reindex.go, progress.go). Repairs are planned by one command and confirmed
// by another (repair.go). A correction is a job like a submission (correct.go).
package objects
