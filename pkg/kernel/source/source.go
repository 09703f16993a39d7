// Package source defines from which URLs content is downloaded: http and https URLs with a host; for submissions also
// s3 URLs, if the profile of the collection names their bucket, and upload URLs of their own upload. Submission,
// manifests and downloads all use these checks, so that no URL is accepted that cannot be downloaded later.
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
	"regexp"
	"strings"
)

var (
	errURL = errors.New("expected an http or https URL")
	errS3  = errors.New("expected an http or https URL; s3 URLs are not fetched, give a presigned https URL of the " +
		"object")
	errObject = errors.New("expected s3://bucket/key, without a query and a fragment")
	errUpload = errors.New("expected upload://UPLOAD/SHA256: the id of an upload, and the SHA-256 of " +
		"one of its files in hexadecimal")
)

// S3 is the scheme of objects in a bucket of S3.
const S3 = "s3"

// Upload is the scheme of files that were uploaded for a submission: upload://UPLOAD/SHA256.
const Upload = "upload"

// NoUpload stands for the id of an upload that is not open yet. Ids have its length.
const NoUpload = "00000000000000000000000000"

// UploadURL is the URL of a file of an upload.
func UploadURL(upload, sha256 string) string { return Upload + "://" + upload + "/" + sha256 }

// IsUpload reports whether a URL is that of a file of an upload.
func IsUpload(raw string) bool { return strings.HasPrefix(raw, Upload+"://") }

// uploadPath is the path of an upload URL.
var uploadPath = regexp.MustCompile(`^/[0-9a-f]{64}$`)

// CheckPayload returns an error if content that is submitted cannot be downloaded from a URL: as Check, but s3 and
// upload URLs are allowed. Whether content of the bucket, or of the upload, may be used, the profile of the collection
// and the submission say (fetch.Access). In the key of an s3 URL characters are encoded as in any URL: a space as %20,
// a percent sign as %25.
func CheckPayload(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != S3 && u.Scheme != Upload {
		return Check(raw)
	}

	bare := u.Host != "" && u.User == nil && u.Port() == "" && u.RawQuery == "" && u.Fragment == ""
	switch {
	case u.Scheme == Upload && (!bare || !uploadPath.MatchString(u.EscapedPath())):
		return errUpload
	case u.Scheme == S3 && (!bare || len(u.Path) < 2):
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
