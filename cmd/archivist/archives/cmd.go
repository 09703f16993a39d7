package archives

// Cmd is for archives with revisions. An archive is registered by name; its name is the first part of the ids of
// its revisions and tasks.
type Cmd struct {
	List     archiveListCmd     `cmd:"" help:"List the archives."`
	Show     archiveShowCmd     `cmd:"" help:"Show an archive: how far it is planned, what runs, and what is wrong."`
	Add      archiveAddCmd      `cmd:"" help:"Register an archive, or change its settings."`
	Pause    archiveActCmd      `cmd:"" help:"Plan and start nothing more. What runs goes on."`
	Resume   archiveResumeCmd   `cmd:"" help:"Resume an archive that is paused or stopped."`
	Skip     archiveSkipCmd     `cmd:"" help:"Give a revision no tasks, for example because it cannot be read."`
	Backfill archiveBackfillCmd `cmd:"" help:"Plan revisions before the first."`
	Delete   archiveActCmd      `cmd:"" help:"Cancel what has not ended, and forget an archive. Its history stays."`

	Revision revisionCmd `cmd:"" help:"List, follow and notify the revisions of archives."`
	Task     taskCmd     `cmd:"" help:"List and follow the tasks of archives; run and cancel them."`
	Workflow workflowCmd `cmd:"" help:"Check the tasks that an archive defines, and see what they wait for."`
}

// Help says what an archive is here.
func (Cmd) Help() string {
	return "An archive is one thing with revisions: a Git or Subversion repository, or a preserved object with its " +
		"versions. It is not the whole of Archivist. Its files below _workflows say which tasks each revision starts."
}
