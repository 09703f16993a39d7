package api

import (
	"context"
	"maps"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/filter"
	"archivist/pkg/ingest"
)

// filterWords are the words of the language of filters, as the package that reads filters has them,
// and values that are known without a look into the table.
func (a *API) filterWords(context.Context, *struct{}) (v1.FilterWords, error) {
	w := filter.Language()
	out := v1.FilterWords{
		Actions: w.Actions,
		Subjects: each(w.Subjects, func(s filter.Subject) v1.FilterSubject {
			return v1.FilterSubject(s)
		}),
		Terms: each(w.Terms, func(t filter.Term) v1.FilterTerm { return v1.FilterTerm(t) }),
		Signs: each(w.Signs, func(s filter.Sign) v1.FilterSign { return v1.FilterSign(s) }),
	}
	for i := range out.Terms {
		if out.Terms[i].Name == "component" {
			out.Terms[i].Values = each(ingest.Stages, func(s ingest.Stage) string { return s.Name })
		}
	}
	return out, nil
}

// wordOperations describes the operation.
var wordOperations = map[string]about{
	"getFilterWords": {tag: "Consumers", role: viewer,
		answer: v1.FilterWords{Actions: []string{"create", "modify"},
			Subjects: []v1.FilterSubject{{Name: "Object", Also: []string{"Item"},
				Actions: []string{"create", "modify"},
				Types:   []string{"object.create", "object.modify"}}},
			Terms: []v1.FilterTerm{{Name: "outcome", Means: "success or failure",
				Values: []string{"success", "failure"}, Only: true}},
			Signs: []v1.FilterSign{{Text: "+", After: filter.AfterSubject,
				Means: "and what happened to it"}}},
		description: "The types of subjects, the actions, the terms with known values, and the signs " +
			"of the language of filters, to complete a filter while it is written."},
}

func init() { maps.Copy(operations, wordOperations) }
