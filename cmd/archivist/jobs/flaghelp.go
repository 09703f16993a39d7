package jobs

import (
	"strings"

	"github.com/alecthomas/kong"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
)

// Vars has the values of the flag of a submission's type. The first one is empty: detected from the content.
var Vars = kong.Vars{"payload_types": "," + strings.Join(v1.PayloadTypes, ",")}

// Texts are the help of flags of this package that is too long for their tags.
var Texts = command.Texts{
	"help_before": "Jobs in their state since before this time: a time in ISO 8601, a date, or how long ago, " +
		"e.g. 2h or 3d.",
	"help_callback":   "https URL that is called for each preserved job; the collection has to allow its host.",
	"help_filename":   "Name under which a file is kept; by default its own, or the last part of its URL.",
	"help_if_version": "Expected newest version of the object; the job fails if it is another one.",
	"help_key":        "Submitting again with the same key gives the same batch; another key makes another one.",
	"help_keep_own":   "For release: leave on hold what has a hold of its own.",
	"help_local_id": "Your own identifier of the object. If the archive knows it, this is the next version of that " +
		"object. Can be repeated.",
	"help_manifest": "Local copy of the manifest to check before submission. By default the manifest at the URL is " +
		"checked.",
	"help_again": "Submit the same files once more, as a new batch.",
	"help_each": "Make each file, or each file and folder directly below the folder, an object with its name as " +
		"local id.",
	"help_exclude": "Leave out files and folders with this name, e.g. .DS_Store or '*.tmp'; with a slash, with this " +
		"path below the folder. Can be repeated.",
	"help_parallel": "Requests that are made at once to send files.",
	"help_source": "Files or a folder of this computer, which become one object (see --each); or the http(s) URL " +
		"from which the archive downloads a file. A single file can be a container (zip, tar, tar.gz, tar.bz2) or a " +
		"manifest (the files of one object, or a row for each object), too; see archivist help manifests.",
	"help_stop_after": "Cancel the batch when so many of its jobs have failed.",
	"help_type": strings.Join(v1.PayloadTypes, ", ") + "; detected from the content if it is left out. A container " +
		"is a zip or tar file, whose files become those of the object.",
	"help_update": "Add the files to those of the object's newest version, or replace them; a file mrt-delete.txt " +
		"among them lists those to delete, one in each line. Without it they are the complete new state of the object.",
	"help_until": "When it ends by itself: a time in ISO 8601, a date, or a duration such as 90m, 2h or 3d. By " +
		"default a person must end it.",
}
