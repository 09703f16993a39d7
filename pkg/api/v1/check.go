package v1

import "context"

// BatchCheck is a submission that is only checked.
type BatchCheck struct {
	BatchRequest
	// The text of a manifest that will be sent to an upload. With it, payload is an empty object.
	Manifest string `json:"manifest,omitempty" maxLength:"1000000"`
}

// BatchChecked is what the checks of a submission have found. What else is wrong with a submission refuses the request.
type BatchChecked struct {
	// Whether it would be accepted.
	Accepted bool `json:"accepted" example:"true"`
	// Warnings that the submitter should check.
	Warnings []string `json:"warnings,omitempty"`
	// The type of the payload that a manifest is. Absent without a manifest.
	Type string `json:"type,omitempty" example:"object-manifest"`
	// The number of rows of the manifest. Absent without a manifest, and if it could not be read.
	Rows int `json:"rows,omitempty" example:"2"`
	// What is wrong with the manifest, at most the first few problems.
	Problems []ManifestProblem `json:"problems,omitempty"`
}

// ManifestProblem is a problem of a manifest.
type ManifestProblem struct {
	// error: the manifest is refused. warning: it is not.
	Severity string `json:"severity" enum:"error,warning" example:"error"`
	// The number of the line, from 1.
	Line int `json:"line" example:"7"`
	// The number of the column, from 1. Absent if the problem is of the whole line.
	Column int `json:"column,omitempty" example:"2"`
	// What is wrong.
	Message string `json:"message" example:"the digest has 63 characters; expected 64"`
}

// CheckBatch checks a submission. Nothing is stored.
func (c *Client) CheckBatch(ctx context.Context, in BatchCheck) (BatchChecked, error) {
	return post[BatchChecked](ctx, c, "/v1/batches/check", in)
}
