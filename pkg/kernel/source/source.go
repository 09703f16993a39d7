// Package source defines from which URLs content is downloaded: http and https URLs with a
// host. Submission, manifests and downloads all use this check, so that no URL is accepted
// that cannot be downloaded later.
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
)

// Check returns an error if content cannot be downloaded from a URL. The error does not repeat
// the URL, which may have secrets.
func Check(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return errURL
	case u.Scheme == "s3":
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
