package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// Handler returns the handler of the API's routes, with the OpenAPI document at /openapi.json and its
// page at /docs. It can be called more than once; the handlers share the caches of a.
//
// A request passes, from the outside: guarded (headers, panics), sharing (scripts of web pages), asMerritt (the forms
// of Merritt's clients), recovered (panics again, so that those clients understand the answer), caused (the cause of
// what it changes), routed (paths and methods), then the mux, and in huma identified (who calls), permitted (the
// role), deployed (whether there is such a service), queried (whether the query is understood) and the checks of the
// schema, before a handler sees it.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	h := humago.New(mux, configuration())
	h.UseMiddleware(a.identified, a.permitted, a.deployed, a.queried)
	a.batches(h)
	a.uploads(h)
	a.doors(h)
	a.jobs(h)
	a.actions(h)
	a.bulk(h)
	a.objects(h)
	a.history(h)
	a.records(h)
	a.formatCounts(h)
	a.preservation(h)
	a.versionZips(h)
	a.places(h)
	a.repairs(h)
	a.corrections(h)
	a.searching(h)
	a.reindexing(h)
	a.restoring(h)
	a.verifying(h)
	a.collections(h)
	a.eventLog(h)
	a.eventLogActions(h)
	a.consumers(h)
	a.replays(h)
	a.premises(h)
	a.components(h)
	a.componentRuns(h)
	a.componentItems(h)
	a.research(h)
	a.researchViews(h)
	a.researchFeeds(h)
	a.researchers(h)
	a.archives(h)
	a.revisions(h)
	a.tasks(h)
	a.explaining(h)
	a.asking(h)
	a.activities(h)
	a.tokens(h)
	if err := complete(h); err != nil {
		panic(err) // a route has no description: every test of a handler fails
	}

	docs(mux)
	a.resolver(mux)
	return a.guarded(a.sharing(h.OpenAPI()).Wrap(asMerritt(a.recovered(a.caused(routed(mux))))))
}
