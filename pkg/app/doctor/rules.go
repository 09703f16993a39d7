package doctor

import (
	"archivist/pkg/components/component"
	"archivist/pkg/events/check"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/ezid"
	"archivist/pkg/ingest/token"
	"archivist/pkg/ingest/upload"
	"archivist/pkg/research"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/views/acts"
	"archivist/pkg/views/browse"
	"archivist/pkg/views/formatcounts"
	"archivist/pkg/views/history"
	"archivist/pkg/views/statistics"
)

// kept are kinds of rows that follow no rule to others: what consumers and components keep for themselves.
var kept = check.Rules{Kinds: []check.Kind{
	{PK: "DERIVATIVES"},
	{PK: "FORMATS"},
	{PK: "FIXITY", SK: "DAY#", Expires: true},
	{PK: "FIXITY"},
	{PK: "REPLICA"},
	{PK: "FILE"},
}}

// rules are those of all packages, for one page of a run. A row of none of their kinds is a finding. The order is that
// in which what is found about a row is reported.
func (d Doctor) rules(pg *check.Page) []check.Rules {
	consumers := consumer.NewChecked(pg)
	return []check.Rules{
		d.Queue.RowRules(),
		d.Reindexer.Rules(pg),
		collection.Rules,
		upload.Rules(d.Work.Bucket),
		token.Rules,
		ezid.Rules(d.Registry),
		eventlog.Rules(pg),
		consumers.Rules(),
		browse.Rules(pg, consumers),
		d.Search.Rules(pg, consumers),
		history.Rules(consumers),
		acts.Rules(consumers),
		statistics.Rules(pg),
		formatcounts.Rules(pg, consumers),
		component.Rules(pg, consumers),
		research.Rules(pg),
		revision.Rules(pg),
		kept,
	}
}
