package derivatives

import (
	"context"
	"encoding/json"
	"path"
	"strings"
	"time"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/ocfl"
)

// Presign returns a URL that reads the thumbnail of a file for ttl. Without a thumbnail it is a
// NotFound that says why. n is the number of the version, and name the path of the file in it. The
// error is also a NotFound if the version has no such file or the file is no image. The URL suggests
// the name of the file with the ending .thumbnail.jpg.
func Presign(ctx context.Context, derived bucket.Bucket, root ocfl.Root, stored *ocfl.Stored, n int,
	name string,
	ttl time.Duration) (string, error) {
	f, err := aip.Of(root, stored, n).File(ctx, name)
	if err != nil {
		return "", err
	}

	if !isImage(f) {
		return "", fault.New(fault.NotFound, "%q is no image of a type that has thumbnails", name)
	}

	digest := f.Digests["sha512"]
	base := strings.TrimSuffix(path.Base(name), path.Ext(name))
	to, err := derived.Presign(ctx, Key(digest), base+".thumbnail.jpg", ttl)
	if fault.Is(err, fault.NotFound) {
		return "", whyNone(ctx, derived, digest, name)
	}
	return to, err
}

// whyNone says why the image with a sha512 has no thumbnail: always an error. It is a NotFound with the stored
// reason, or one that says "yet" if the consumer has not come to the image.
func whyNone(ctx context.Context, derived bucket.Bucket, digest, name string) error {
	text, _, err := derived.Read(ctx, reasonKey(digest))
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.NotFound, "%q has no thumbnail yet", name)
	}

	if err != nil {
		return err
	}

	var why Reason
	if err := json.Unmarshal(text, &why); err != nil {
		return err
	}
	return fault.New(fault.NotFound, "%q has no thumbnail: %s", name, why.Reason)
}
