package localstack

import "net/http"

// SourcesHandler serves what is fetched from this machine: the sample, and the Git repositories below a folder, if Git
// is installed.
func SourcesHandler(repositories string) (http.Handler, error) {
	files, err := SampleHandler()
	if err != nil {
		return nil, err
	}

	mux := http.NewServeMux()
	mux.Handle("/", files)
	git, err := GitHandler(repositories)
	if err == nil { // without Git there is no sample of archives
		mux.Handle("/git/", http.StripPrefix("/git", git))
	}
	return mux, nil
}
