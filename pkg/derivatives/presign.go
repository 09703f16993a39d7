package derivatives

import (
	"context"
	"encoding/json"
	"path"
	"strings"
	"time"

	"archivist/pkg/aip"
	"archivist/pkg/bucket"
	"archivist/pkg/fault"
	"archivist/pkg/ocfl"
)

// Presign returns a URL that reads the thumbnail of a file for ttl. Without a thumbnail it is a
// NotFound that says why.
func Presign(ctx context.Context, derived bucket.Bucket, root ocfl.Root, stored *ocfl.Stored, n int, name string,
	ttl time.Duration) (string, error) {
	f, err := aip.Of(root, stored, n).File(ctx, name)
	if err != nil {
		return "", err
	}
	if !isImage(f) {
		return "", fault.New(fault.NotFound, "%q is no image of a type that has thumbnails", name)
	}
	digest := f.Digests["sha512"]
	_, err = derived.Head(ctx, Key(digest))
	if err == nil {
		base := strings.TrimSuffix(path.Base(name), path.Ext(name))
		return derived.Presign(ctx, Key(digest), base+".thumbnail.jpg", ttl)
	}
	if !fault.Is(err, fault.NotFound) {
		return "", err
	}
	text, _, err := derived.Read(ctx, reasonKey(digest))
	if fault.Is(err, fault.NotFound) {
		return "", fault.New(fault.NotFound, "%q has no thumbnail yet", name)
	}
	if err != nil {
		return "", err
	}
	var why Reason
	if err := json.Unmarshal(text, &why); err != nil {
		return "", err
	}
	return "", fault.New(fault.NotFound, "%q has no thumbnail: %s", name, why.Reason)
}
