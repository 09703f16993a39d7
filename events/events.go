// Package events holds a sample payload of every function's input, as AWS sends it. A test
// decodes each, and a function can be invoked with one:
//
//	aws lambda invoke --function-name … --payload fileb://events/scheduler.minute.json out.json
package events

import "embed"

// Files are the samples, FUNCTION.CASE.json.
//
//go:embed *.json
var Files embed.FS
