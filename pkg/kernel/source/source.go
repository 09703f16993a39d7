// Package source defines from which URLs content is downloaded: http and https URLs with a host; for submissions also
// s3 URLs, if the profile of the collection names their bucket. Submission, manifests and downloads all use these
// checks, so that no URL is accepted that cannot be downloaded later.
//
//	if err := source.Check(row.URL); err != nil {
//		return fmt.Errorf("fileUrl: %w", err)
//	}
//
// For the addresses that a host may have, see fetch.Guard.
package source

import (
	"errors"
	"net/url"
	"path"
)

var (
	errURL = errors.New("expected an http or https URL")
	errS3  = errors.New("expected an http or https URL; s3 URLs are not fetched, give a presigned https URL of the " +
		"object")
	errObject = errors.New("expected s3://bucket/key, without a query and a fragment")
)

// S3 is the scheme of objects in a bucket of S3.
const S3 = "s3"

// CheckPayload returns an error if content that is submitted cannot be downloaded from a URL: as Check, but s3 URLs
// are allowed. Whether content of the bucket may be used, the profile of the collection says (fetch.Access). In the
// key of an s3 URL characters are encoded as in any URL: a space as %20, a percent sign as %25.
func CheckPayload(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != S3 {
		return Check(raw)
	}
	if u.Host == "" || u.User != nil || u.Port() != "" || len(u.Path) < 2 || u.RawQuery != "" || u.Fragment != "" {
		return errObject
	}
	return nil
}

// Check returns an error if content cannot be downloaded from a URL. The error does not repeat
// the URL, which may have secrets.
func Check(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return errURL
	case u.Scheme == S3:
		return errS3
	case !Fetched(u):
		return errURL
	}
	return nil
}

// Fetched reports whether content can be downloaded from a URL. The URL of a redirect is
// checked by it too. What addresses the host has is not looked at.
func Fetched(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// Base is the last part of a URL's path, the default name of a file; "." if there is none.
// Escapes of the path are decoded first, so the result may have any character but a slash.
func Base(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "."
	}
	return path.Base(u.Path)
}
