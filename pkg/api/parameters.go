package api

import v1 "archivist/pkg/api/v1"

// parameters describes parameters by name or, for one operation, by operation and name. An entry
// "operation name" goes before one of the name alone. More are added where other operations are
// described.
var parameters = map[string]parameter{
	"id":         {"The id of the batch or the job.", batchID},
	"collection": {"The name of the collection.", "maps"},
	"state":      {"Only items in this state. Case is ignored.", v1.Failed},
	"format": {"json or csv. In CSV a field that a spreadsheet would take for a formula has an " +
		"apostrophe in front. By default Accept decides, and otherwise it is JSON.", ""},
	"number":  {"The number of the report, from 1. Omit it for the newest.", ""},
	"cursor":  {"The cursor of the previous page. Omit it for the first page.", ""},
	"localId": {"The depositor's own id of the object. Requires collection.", "map-1851"},
	"ark":     {"The ARK of the object.", arkExample},
	"scheme":  {"The scheme of the ARK.", "ark:"},
	"naan":    {"The first part of the ARK: the number of the organization that assigned it (NAAN).", "99999"},
	"name":    {"The second part of the ARK.", "fk4tq65d6k"},
	"n":       {"The number of the version, from 1.", ""},
	"path":    {"The path of the file in the version.", "producer/map.tif"},

	"submitter": {"Only those of this submitter, exactly.", "Map Library"},
	"message":   {"Only those whose message has this text, in any case of letters.", "404"},
	"before": {"Only those created before this time, or before the beginning of this day in UTC.",
		"2026-11-23"},
	"listBatches after": {"Only those created at this time or later; a day begins at midnight in UTC.", "2026-11-22"},
	"listJobs after":    {"Only those created at this time or later; a day begins at midnight in UTC.", "2026-11-22"},
	"title": {"Only objects whose title begins so. Cases and diacritics make no difference; a number is one whole.",
		"harb"},
	"findObjects format": {"Only objects with a file of this format: a media type, or an id of " +
		"PRONOM.", "image/tiff"},
	"findObjects sort": {"By title; by date, the earliest first; or by modified, the last changed " +
		"first. With or without a collection and a format.", "date"},
	"order": {"The direction of sort, if it is not the ordinary one. Objects without a date are the " +
		"last in either.", "descending"},
	"listJobs order":    {orderOfList, v1.Oldest},
	"listBatches order": {orderOfList, v1.Oldest},
	"listBatchJobs order": {"The direction of sort, if it is not the ordinary one. It needs a " +
		"sort.",
		v1.Descending},
	"listBatchJobs callback": {"Only jobs of which a callback is in this state.", v1.NoticeGivenUp},
	"listJobs sort":          {"By what jobs are sorted: " + jobSorts, v1.BySpace},
	"listBatchJobs sort": {"By what jobs are sorted in place of their order: " + jobSorts,
		v1.BySpace},
	"listBatches sort": {"By what batches are sorted: by state; since when they are in it, the " +
		"longest first; by the " +
		"number of their jobs, or of those that failed, or the bytes of those that completed, the " +
		"most first; or by submitter. " + sortedWhole, v1.ByBytes},
	"date":                   {"Only objects whose date begins so: a year, a month or a day.", "1851"},
	"listJobs localId":       {"Only jobs with this local id.", "map-1851"},
	"listJobs ark":           {"Only jobs of the object with this ARK.", arkExample},
	"listJobs collection":    {"Only those of this collection. By default of all.", "maps"},
	"listBatches collection": {"Only those of this collection. By default of all.", "maps"},

	"query": {"What to search for: words, \"several words\" that follow each other, beginnings of words with a *, " +
		"and fields, all of which must be found; with a - in front, must not be found. The fields are title, " +
		"creator, collection, date, id, ark, file and format. A date can be a range. Omit it for all " +
		"objects.",
		"harbour creator:blunt date:1800..1899"},
	"sort": {"The order: by relevance, the best first; by title; by date, the earliest first; by modified, the " +
		"last changed first.", "relevance"},
	"limit":             {"How many objects a page has at most.", ""},
	"listJobs limit":    {"How many jobs a page has at most.", ""},
	"listBatches limit": {"How many batches a page has at most.", ""},
	"attention":         {"Only the lines that need a person. It costs less.", ""},
	"batches":           {"Count by batch, too: those that have the most jobs.", ""},
	"quick": {"Leave out jobs that are deferred by their source, and all but 200 failed ones with work files: " +
		"at most 10 calls of the table.", ""},
	"listFiles limit":   {"How many of the depositor's files a page has at most.", ""},
	"listChanges limit": {"How many files a page has at most.", ""},
	"by":                {"Which list: by title, by date, by creator or by collection.", "title"},
	"from":              {"Begin at this title, date, creator or collection.", "harb"},

	"browseObjects collection": {"Only this collection. Requires the list by collection.", "maps"},

	"reason": {"The reason. It is kept in the events.",
		"A new version of the function."},
	"listParked partition": {"Only this partition of the log.", "maps"},

	"getConsumer name":          {"The name of the consumer.", "search"},
	"putConsumer name":          {"The name of the consumer.", "search"},
	"actOnConsumer name":        {"The name of the consumer.", "search"},
	"listReplays name":          {"The name of the consumer.", "search"},
	"startReplay name":          {"The name of the consumer.", "search"},
	"getReplay id":              {"The id of the replay.", operationID},
	"actOnReplay id":            {"The id of the replay.", operationID},
	"listParked name":           {"The name of the consumer.", "search"},
	"listConsumerEvents name":   {"The name of the consumer.", "search"},
	"getCollection name":        {"The name of the collection.", "maps"},
	"putCollection name":        {"The name of the collection.", "maps"},
	"listCollectionEvents name": {"The name of the collection.", "maps"},
	"actOnCollection name":      {"The name of the collection.", "maps"},

	"getComponent name":        {"The name of the component.", "count-words"},
	"putComponent name":        {"The name of the component.", "count-words"},
	"actOnComponent name":      {"The name of the component.", "count-words"},
	"listComponentEvents name": {"The name of the component.", "count-words"},
	"listLine name":            {"The name of the component.", "count-words"},
	"listRuns name":            {"The name of the component.", "count-words"},
	"getRun name":              {"The name of the component.", "count-words"},
	"startRun name":            {"The name of the component.", "count-words"},
	"run":                      {"The id of the run.", operationID},
	"class":                    {"Which items: ready, later, running or failed.", "ready"},
	"in":                       {"Which files: storage (in the storage bucket) or copy (in the second).", "storage"},
	"item":                     {"The id of the item.", itemID},
	"dryRun":                   {"Whether only to list the items that would be ready now.", ""},
	"kind":                     {"Only items of this kind.", "item"},
	"type":                     {"Only items of this type.", "delivery"},
	"getItem id":               {"The id of the item.", itemID},
	"listItemHistory id":       {"The id of the item.", itemID},
	"actOnItem id":             {"The id of the item.", itemID},
	"getItemPREMIS id":         {"The id of the item.", itemID},
	"importItemPREMIS id":      {"The id of the item.", itemID},

	"listRestores table": {"Only this table, which may also be one that was made empty.",
		"archivist-restored"},

	"reindex ark": {"Only the object with this ARK.", arkExample},
	"reindex cursor": {"The cursor of the previous response, or the key prefix at which to begin.",
		"a0"},
	"reindex to": {"The key prefix at which to end. So several requests can share the work.",
		"b"},

	"explain id":         {"The id or the name of the thing, or TYPE:ID.", jobID},
	"explain collection": {"The id is a local id in this collection.", ""},
	"explain component":  {"The id is an item: only what this component waits for.", ""},
	"explain consumer":   {"The id is the subject of an event: what this consumer did with it. Requires event.", ""},
	"explain event":      {"The number of the event. Requires consumer.", ""},
	"explain clip":       {"The id is an episode: the pair of it and the clip with this key.", ""},

	"getOperation id":        {"The id of the operation.", operationID},
	"listItems id":           {"The id of the operation.", operationID},
	"listRefusals id":        {"The id of the operation.", operationID},
	"listFindings id":        {"The id of the operation.", operationID},
	"listOperationEvents id": {"The id of the operation.", operationID},
	"actOnOperation id":      {"The id of the operation.", operationID},

	"subject": {"The subject of the event: its type, a colon and its id.", "Job:" +
		jobID},
	"version":  {"The number of the event among those of its subject, from 1.", ""},
	"consumer": {"The name of the consumer.", "search"},
	"partition": {"The name of a partition of the log. Its events are listed in order.",
		"maps"},
	"after":                 {"With partition: the place after which to begin. Omit it for the oldest event.", ""},
	"listEvents collection": {"The name of a collection, or site. Its events are listed, newest first.", "maps"},
	"listActs actor": {"Only what this person did: the subject of the token, with or without the name in brackets.",
		"ann"},
	"listActs filter":   {"Only acts whose event this filter selects.", "Collection|Queue+All"},
	"listActs before":   {"Only those before this time, or before the beginning of this day in UTC.", "2026-11-23"},
	"listEvents filter": {"Only events that this filter selects.", "Object+Create:Version"},

	"Idempotency-Key": {"A key of your choice, so that the request can be repeated safely.",
		"maps-2026-11-22"},
	"Archivist-User": {"The name of the person who makes the request, where calls need no token. " +
		"It is not verified, and events say so: `an operator (unverified: \"ann\")`.", "ann"},

	"getFormatCounts collection": {"The name of a collection. Omit it for all.", "maps"},
	"listStatistics collection":  {"The name of a collection. Omit it for all.", "maps"},
	"listStatistics from": {"The first day, in UTC. Omit it for a month before the last.",
		"2026-11-01"},
	"listStatistics to": {"The last day, in UTC. Omit it for today.", "2026-11-22"},
}

// What parameters of sorted lists say.
const (
	orderOfList = "The newest or the oldest first. With a sort its direction, ascending or " +
		"descending, if it " +
		"is not the ordinary one."
	jobSorts = "by state; since when they are in it, the longest first; by the work space that " +
		"they " +
		"need, the most first; or by title. " + sortedWhole
	sortedWhole = "Not without an error if more than 400 match, or a batch has more than 800. " +
		"Each page is read anew: what " +
		"changes " +
		"meanwhile in what is sorted by can be on two pages or on none."
)
