package inprocess

import (
	"net/http"
	"slices"
	"strings"

	uploads "archivist/pkg/ingest/upload"
)

// sharing lets scripts of the origins send files to the work bucket, as the rules of that bucket do: what they have no
// method for, S3 answers as without rules.
func (s *System) sharing(buckets http.Handler) http.Handler {
	may := uploads.Sharing(append(slices.Clone(s.settings.Origins), s.settings.Console...))
	shared, methods := may.Wrap(buckets), append(may.Methods, http.MethodOptions)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/"+workBucket+"/") && slices.Contains(methods, r.Method) {
			shared.ServeHTTP(w, r)
			return
		}
		buckets.ServeHTTP(w, r)
	})
}
