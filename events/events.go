// Package events holds a sample payload of every function's input, as AWS sends it, and what
// each type of event looks like. A test decodes each sample, and a function can be invoked
// with one:
//
//	aws lambda invoke --function-name … --payload fileb://events/scheduler.minute.json out.json
//
// Of each type of event of the log, the directory types has a JSON Schema and a sample.
// Consumers get events in this form, and so does a bus as the detail of its events.
//
// Those of types are made by tests from what the code writes (go test ./events -update), not by
// hand.
package events

import "embed"

// Files are the samples, FUNCTION.CASE.json.
//
//go:embed *.json
var Files embed.FS

// Types are the schemas, types/TYPE.schema.json, and the samples, types/TYPE.json. What all
// types have in common is in types/event.schema.json.
//
//go:embed types/*.json
var Types embed.FS
