package v1

import "context"

// HistoryEvent is an event of the permanent record of an object.
type HistoryEvent struct {
	// The id of the event.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ7.0"`
	// The type of what it is about.
	SubjectType string `json:"subjectType" enum:"Object,Version,ComponentItem"`
	// The id of what it is about: the ARK of the object, that with the number of the version, or that of an item.
	SubjectID string `json:"subjectId" example:"ark:/99999/fk4tq65d6k/v1"`
	// The number of the event among those of its subject, from 1.
	Version int64 `json:"version" example:"3"`
	// The type of the event.
	Type string `json:"type" example:"version.create"`
	// What was done: create, modify, add, delete, and so on.
	Action string `json:"action" example:"create"`
	// The time of the event.
	Time string `json:"time" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// The outcome of the event.
	Outcome string `json:"outcome" enum:"success,failure"`
	// The person or account that caused it.
	Actor string `json:"actor,omitempty" example:"an operator"`
	// The component of the archive that made it.
	Component string `json:"component,omitempty" example:"record"`
	// The version of that component.
	ComponentVersion string `json:"componentVersion,omitempty" example:"v1.2.3"`
	// The id of the event that caused it, if a consumer of events made it.
	Cause string `json:"cause,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ7.1"`
	// All by which the subject was known.
	Identifiers []string `json:"identifiers,omitempty" example:"ark:/99999/fk4tq65d6k"`
	// The details. Their form depends on the type.
	Detail map[string]any `json:"detail,omitempty"`
	// What changed, as it was before.
	Before map[string]any `json:"before,omitempty"`
	// What changed, as it was afterwards.
	After map[string]any `json:"after,omitempty"`
}

// EventCounts are numbers of what happened, as events tell it.
type EventCounts struct {
	// Objects that were added.
	Objects int64 `json:"objects" example:"120"`
	// Versions that were stored.
	Versions int64 `json:"versions" example:"151"`
	// Files of these versions.
	Files int64 `json:"files" example:"3120"`
	// Bytes of these files.
	Bytes int64 `json:"bytes" example:"73014444032"`
	// Jobs that were completed.
	Completed int64 `json:"completed" example:"151"`
	// Failures of jobs. A job that fails again after a requeue counts again.
	Failed int64 `json:"failed" example:"4"`
	// Downloads of files through the API.
	Downloads int64 `json:"downloads" example:"980"`
}

// Statistics are the counts of a collection. Those of events that belong to no collection are
// under the name site.
type Statistics struct {
	// The name of the collection.
	Collection string `json:"collection" example:"maps"`
	// The time of the last event that was counted.
	Updated string `json:"updated,omitempty" format:"date-time" example:"2026-11-22T09:31:12Z"`
	EventCounts
	// The counts of each day, if they were asked for. Days without counts are left out.
	Days []DayCounts `json:"days,omitempty"`
}

// DayCounts are the counts of one day.
type DayCounts struct {
	// The day, in UTC.
	Date string `json:"date" format:"date" example:"2026-11-22"`
	EventCounts
}

// ObjectStatistics are the counts of one object.
type ObjectStatistics struct {
	// The ARK of the object.
	ARK string `json:"ark" example:"ark:/99999/fk4tq65d6k"`
	// Downloads of its files through the API.
	Downloads int64 `json:"downloads" example:"12"`
	// The time of the last download.
	LastDownload string `json:"lastDownload,omitempty" format:"date-time" example:"2026-11-22T09:31:12Z"`
}

// History lists the permanent record of an object, oldest event first.
func (c *Client) History(ctx context.Context, ark string) ([]HistoryEvent, error) {
	return list[HistoryEvent](ctx, c, ObjectPath(ark)+"/history", 0)
}

// Statistics lists the counts of all collections or, with a name, of one.
func (c *Client) Statistics(ctx context.Context, collection string) ([]Statistics, error) {
	return list[Statistics](ctx, c, "/v1/statistics", 0, "collection", collection)
}

// StatisticsOf returns the counts of a collection with those of the days from one to another,
// e.g. "2026-11-22".
func (c *Client) StatisticsOf(ctx context.Context, collection, from,
	to string) (Statistics, error) {
	all, err := list[Statistics](ctx, c, "/v1/statistics", 1, "collection", collection, "from",
		from, "to", to)
	if err != nil || len(all) == 0 {
		return Statistics{}, err
	}
	return all[0], nil
}

// ObjectStatistics returns the counts of an object.
func (c *Client) ObjectStatistics(ctx context.Context, ark string) (ObjectStatistics, error) {
	return get[ObjectStatistics](ctx, c, ObjectPath(ark)+"/statistics")
}
