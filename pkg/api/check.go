package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/ark"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/payload"
	"archivist/pkg/kernel/source"
)

// CheckSubmission is a request to check a submission.
type CheckSubmission struct {
	Body v1.BatchCheck
}

// checkBatch makes the checks of a submission, and those of its manifest, if that is given. Nothing is stored.
func (a *API) checkBatch(ctx context.Context, in *CheckSubmission) (out v1.BatchChecked,
	err error) {
	if in.Body.Manifest != "" {
		out, err = a.checkManifest(ctx, &in.Body)
		if err != nil || !out.Accepted {
			return out, err
		}
	}

	b, err := batchOf(in.Body.BatchRequest)
	if err == nil {
		err = mayDeposit(ctx, b.Collection)
	}
	if err != nil {
		return out, err
	}

	begins, err := a.newCollection(ctx, b.Collection)
	if err != nil {
		return out, err
	}
	switch {
	case in.Body.Manifest != "":
		b.URL = source.UploadURL(source.NoUpload, b.Digest)
	case b.Upload != "":
		_, err = a.claim(ctx, &b, in.Body.Payload.File)
	}
	if err == nil {
		err = a.admissible(ctx, &b)
	}
	if err != nil {
		return out, err
	}

	out.Accepted = true
	out.Warnings, err = a.doubts(ctx, &b, begins)
	return out, err
}

// doubts are what a person may want to know of a submission that is accepted. begins: it would begin a collection.
func (a *API) doubts(ctx context.Context, b *ingest.Batch, begins string) (all []string, err error) {
	all, err = a.otherForms(ctx, b)
	if begins != "" {
		all = append([]string{begins}, all...)
	}
	if id, bad := ark.Parse(b.Primary); bad == nil && !id.Valid() {
		all = append(all, "identifiers.primary: the check character of "+b.Primary+
			" is wrong; check the ARK for typing errors")
	}
	return all, err
}

// checkManifest checks a manifest that is given as text, and makes it the payload of the submission.
func (a *API) checkManifest(ctx context.Context, in *v1.BatchCheck) (v1.BatchChecked, error) {
	var out v1.BatchChecked
	if err := mayDeposit(ctx, in.Collection); err != nil {
		return out, err
	}
	profile, _, err := a.Collections.Profile(ctx, in.Collection)
	if err != nil {
		return out, err
	}
	kind, _, err := checkm.Read(strings.NewReader(in.Manifest), checkm.Options{}, nil)
	if err != nil {
		return out, err
	}
	out.Type = ingest.TypeObjectManifest
	for name, list := range payload.Lists {
		if list.Kind == kind.Kind {
			out.Type = name
		}
	}

	// As Unpack and Estimate read it: the digests of objects that have manifests are in these.
	digests := profile.RequireDigest && payload.Lists[out.Type].Row != ingest.TypeObjectManifest
	m, rows, problems, err := checkm.ReadAll(strings.NewReader(in.Manifest), checkm.Options{
		RequireDigest: digests, Check: payload.CheckRow(profile.Refuses(""))})
	if err != nil {
		return out, err
	}

	out.Accepted, out.Rows = len(checkm.Rejected(problems)) == 0, m.Rows
	for _, p := range problems {
		out.Problems = append(out.Problems, v1.ManifestProblem{Severity: string(p.Severity),
			Line: p.Line, Column: p.Column, Message: p.Message})
	}
	if line, why := payload.Unnamed(rows, in.Mode); why != "" && out.Type != ingest.TypeObjectManifest {
		out.Accepted = false
		out.Problems = append(out.Problems, v1.ManifestProblem{Severity: string(checkm.Error),
			Line: line, Message: why})
	}
	sum := sha256.Sum256([]byte(in.Manifest))
	in.Payload = v1.Payload{Upload: source.NoUpload, Type: out.Type, Filename: "manifest.checkm",
		Digest: &v1.Digest{Algorithm: "sha256", Value: hex.EncodeToString(sum[:])}}
	return out, nil
}
