package inventory

import (
	"context"
	"encoding/json"
	"fmt"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
)

// Exists reports whether an object is recorded.
func (s Store) Exists(ctx context.Context, ark string) (bool, error) {
	_, err := s.Object(ctx, ark)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// Snapshot returns events that say how an object and its versions are now, with the details
// that the events of their creation have. A missing object is a NotFound. The object comes first,
// then its versions in order. They are made when they are asked for, and not stored.
func (s Store) Snapshot(ctx context.Context, ark string) ([]envelope.Event, error) {
	o, err := s.Object(ctx, ark)
	if err != nil {
		return nil, err
	}

	subject := envelope.Ref{Type: event.Object.String(), ID: ark}
	all := []envelope.Event{}
	add := func(e envelope.Event, detail, after any) error {
		// The id follows from the subject and its version, so it is the same each time.
		e.ID = fmt.Sprintf("%s.%s.%s.%d", envelope.Snapshot, e.Subject.Type, e.Subject.ID,
			e.Version)
		e.Type, e.Action, e.Outcome, e.Schema = envelope.Snapshot, envelope.Create, event.Success, 1
		e.Identifiers = o.identifiers()
		var err error
		if e.Detail, err = json.Marshal(detail); err != nil {
			return err
		}

		e.After, err = json.Marshal(after)
		all = append(all, e)
		return err
	}

	err = add(envelope.Event{
		Subject: subject,
		Version: o.Number,
		Time:    o.Modified,
		Parents: o.parents(),
	},
		Detail{Version: o.HeadOf, LocalIDs: []string{}}, o.properties())

	for cursor, first := "", true; err == nil && (first || cursor != ""); first = false {
		var rows []Version
		rows, cursor, err = s.Versions(ctx, ark, cursor)
		for _, v := range rows {
			d := VersionDetail{
				Object:  ark,
				Version: v.Number,
				Job:     v.Job,
				Files:   v.Files,
				Bytes:   v.Bytes,
				Created: v.Created,
				Digest:  v.Digest,
			}

			of := envelope.Ref{Type: event.Version.String(), ID: VersionID(ark, v.Number)}
			if err == nil {
				err = add(envelope.Event{
					Subject: of,
					Version: 1,
					Time:    v.Created,
					Parents: append(o.parents(), subject),
				}, d, d)
			}
		}
	}
	return all, err
}
