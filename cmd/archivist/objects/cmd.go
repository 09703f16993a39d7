package objects

// Cmd is for the users of preserved objects.
type Cmd struct {
	List    objectListCmd    `cmd:"" help:"List objects: those of a collection, last changed first, or all by title."`
	Search  objectSearchCmd  `cmd:"" help:"Search for objects by words of their descriptions and files."`
	Browse  objectBrowseCmd  `cmd:"" help:"List all objects by title, date, creator or collection."`
	Show    objectShowCmd    `cmd:"" help:"Show an object and its versions."`
	Files   objectFilesCmd   `cmd:"" help:"List the files of a version."`
	Formats objectFormatsCmd `cmd:"" help:"List the formats of the files of a version."`
	Fixity  objectFixityCmd  `cmd:"" help:"Show the last check of the stored files of an object."`
	Get     objectGetCmd     `cmd:"" help:"Download the files of a version and verify their digests."`
	Export  objectExportCmd  `cmd:"" help:"Write objects as bags, with every digest and their records."`
	Correct objectCorrectCmd `cmd:"" help:"Correct the description or the local ids of an object, without its content."`
	Repair  objectRepairCmd  `cmd:"" help:"Plan the repair of a stored file from its copy, or do what is planned."`
	Repairs objectRepairsCmd `cmd:"" help:"List the repairs of an object."`

	Withdraw  objectWithdrawCmd  `cmd:"" help:"Withdraw an object from access. Its files stay stored."`
	Reinstate objectReinstateCmd `cmd:"" help:"End the withdrawal of an object: its files are given out again."`
	LegalHold legalHoldCmd       `cmd:"" help:"Place or lift the legal hold of an object."`
	Retain    objectRetainCmd    `cmd:"" help:"Retain the content of an object until a day."`
	Embargo   objectEmbargoCmd   `cmd:"" help:"Give out no files of an object until a day, or lift its embargo."`

	Preservation preservationCmd `cmd:"" help:"Show how well objects are preserved: their copies and checks."`

	History objectHistoryCmd `cmd:"" help:"Show the permanent record of an object, or export it as PREMIS."`
	Reindex reindexCmd       `cmd:"" help:"Restore missing rows of objects from the storage root."`
}
