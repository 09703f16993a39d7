package console

import (
	"encoding/json"
	"net/http"
	"slices"

	v1 "archivist/pkg/api/v1"
)

// siteLog is the log of what is in no collection.
const siteLog = "site"

// filterWords answers with what the fields of filters are completed by: the words of the language,
// which the API knows, and names that this archive has. The script asks for it once on a page, when
// somebody comes to such a field.
func (c *Console) filterWords(v *visit) error {
	words, err := v.api.FilterWords(v.Context())
	if err != nil {
		return err
	}
	logs, err := v.api.LogPartitions(v.Context())
	if err != nil {
		return err
	}
	lines, err := v.api.Components(v.Context())
	if err != nil {
		return err
	}

	collections := slices.DeleteFunc(logsOf(logs), func(s string) bool { return s == siteLog })
	known := map[string][]string{"parent": collections}
	for _, l := range lines {
		known["component"] = append(known["component"], l.Name)
	}
	for i, t := range words.Terms {
		words.Terms[i].Values = slices.Concat(t.Values, known[t.Name])
	}
	data, err := json.Marshal(words)
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/json")
	write(v.w, v.Request, http.StatusOK, data)
	return nil
}

// logsOf are the logs of partitions: the collections that have events, and site.
func logsOf(all []v1.LogPartition) (names []string) {
	for _, p := range all {
		names = append(names, p.Log)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
