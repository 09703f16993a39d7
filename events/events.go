// Package events holds a sample payload of every function's input, as AWS sends it.
package events

import "embed"

// Files are the samples, FUNCTION.CASE.json.
//
//go:embed *.json
var Files embed.FS
