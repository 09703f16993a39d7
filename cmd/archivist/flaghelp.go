package main

import "github.com/alecthomas/kong"

// flagHelp is the help on flags and arguments, and their values, that are too long for the
// line of their field.
var flagHelp = kong.Vars{
	"payload_types": ",file,object-manifest,batch-manifest,single-file-batch-manifest",
	"help_allow": "Private network from which recordings are downloaded, too, e.g. 127.0.0.0/8; else only public " +
		"addresses are. Can be repeated.",
	"help_cache": "Folder of recordings, and of reports that were not yet taken.",
	"help_queue": "SQS queue of pending work, read with the AWS credentials of this computer; " +
		"else the API gives work.",
	"help_researcher": "Name of the researcher; by default that of this computer, and the number of the process.",
	"help_action_key": "Repeating the same action with the same key does nothing more and gives the same result.",
	"help_before": "Jobs in their state since before this time: a time in ISO 8601, a date, or how long ago, " +
		"e.g. 2h or 3d.",
	"help_filename":   "Name under which a file is kept; by default the last part of its URL.",
	"help_if_version": "Expected newest version of the object; the job fails if it is another one.",
	"help_into":       "Build beside what is in use: calls of the target have this name as the consumer.",
	"help_json": "Print these fields as JSON, separated by commas; all prints every field, no value lists their " +
		"names.",
	"help_key": "Submitting again with the same key gives the same batch.",
	"help_local_id": "Your own identifier of the object. If the archive knows it, this is the next version of that " +
		"object. Can be repeated.",
	"help_manifest": "Local copy of the manifest to check before submission. By default the manifest at the URL is " +
		"checked.",
	"help_profile":     "Deployment to use, by its name in the config file.",
	"help_raise_epoch": "Say that the table was restored from a backup. Consumers stop until each is reset.",
	"help_source": "http(s) URL from which the archive downloads a file, an object manifest (the files of one " +
		"object) or a batch manifest (a row for each object); see archivist help manifests.",
	"help_keep_own":   "For release: leave on hold what has a hold of its own.",
	"help_stop_after": "Cancel the batch when so many of its jobs have failed.",
	"help_type": "file, object-manifest, batch-manifest or single-file-batch-manifest; detected from the content " +
		"if it is left out.",
	"help_until": "When it ends by itself: a time in ISO 8601, a date, or a duration such as 90m, 2h or 3d. By " +
		"default a person must end it.",
}
