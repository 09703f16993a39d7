package research

import (
	"archivist/cmd/archivist/command"
)

// Texts are the help of flags of this package that is too long for their tags.
var Texts = command.Texts{
	"help_allow": "Private network from which recordings are downloaded, too, e.g. 127.0.0.0/8; else only public " +
		"addresses are. Can be repeated.",
	"help_cache": "Folder of recordings, and of reports that were not yet taken.",
	"help_queue": "SQS queue of pending work, read with the AWS credentials of this computer; " +
		"else the API gives work.",
	"help_researcher": "Name of the researcher; by default that of this computer, and the number of the process.",
}
