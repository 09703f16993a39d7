package research

import (
	"context"

	"archivist/pkg/kernel/fault"
)

// Curate adds what a curator says of an episode or a clip (source: the requirement; a title is
// never an identity). A record that says nothing new changes nothing, and makes no event: so a
// record can come any number of times. It returns the key of the episode or clip; an Invalid for a
// record that cannot be kept, a NotFound if there is no such project, an Unavailable if it can be
// kept later.
func (s *Store) Curate(ctx context.Context, r Curated, by By) (key string, err error) {
	err = r.Check(s.now())
	if err != nil {
		return "", err
	}

	key = r.Key()
	changed := false
	err = s.change(ctx, wantMedia(r.Kind, r.Project, key), by, func(c *change) error {
		m, known := c.mediaOf(r.Kind)
		before, recording := rowText(*m), recordingOf(m)
		m.merge(r)
		changed = rowText(*m) != before
		if !changed {
			return nil
		}
		if r.Kind == Episode && known && recordingOf(m) != recording {
			c.episode.Moves++
		}

		if r.Kind == Clip && !known && c.project.Numbers >= MaxClips {
			return fault.New(fault.Invalid,
				"the project %s has %d clips, which is the most that is possible; make "+
					"another project", r.Project, c.project.Numbers)
		}
		return c.recorded(r.Kind, m)
	})
	if err != nil {
		return key, err
	}

	if changed {
		s.wake(ctx, r.Project)
	}
	return key, nil
}

// wantMedia names the row of an episode or clip for a change.
func wantMedia(kind Kind, project, key string) want {
	if kind == Clip {
		return want{project: project, clip: key}
	}
	return want{project: project, episode: key}
}

// mediaOf is what is known of the episode or clip of the change, and whether it was known before.
// What is set in m is written.
func (c *change) mediaOf(kind Kind) (m *Media, known bool) {
	if kind == Clip {
		return &c.clip.media, c.clip.Rev > 0
	}
	return &c.episode.media, c.episode.Rev > 0
}

// eventTypes are those of an episode and of a clip to which the same happens.
type eventTypes struct{ episode, clip string }

var (
	curatedEvent     = eventTypes{"episode.curated", "clip.curated"}
	withdrawnEvent   = eventTypes{"episode.withdrawn", "clip.withdrawn"}
	deferredEvent    = eventTypes{"episode.deferred", "clip.deferred"}
	quarantinedEvent = eventTypes{"episode.set-aside", "clip.set-aside"}
	retriedEvent     = eventTypes{"episode.retried", "clip.retried"}
)

// mediaEvent adds an event of the episode or clip of the change. Without one, a row that is new is
// not written.
func (c *change) mediaEvent(kind Kind, types eventTypes, detail any) error {
	if kind == Clip {
		return c.clipEvent(types.clip, detail)
	}
	return c.episodeEvent(types.episode, detail)
}

// recorded adds the event of what a curator said.
func (c *change) recorded(kind Kind, m *Media) error {
	if m.Withdrawn {
		return c.mediaEvent(kind, withdrawnEvent, Recorded{*m})
	}
	return c.mediaEvent(kind, curatedEvent, Recorded{*m})
}

// Retry makes an episode or clip that was quarantined or deferred researchable again, at once: its
// failures are forgotten. It returns an Invalid without a reason, a NotFound if there is no such
// episode or clip, and a Conflict if it is neither quarantined nor deferred.
func (s *Store) Retry(ctx context.Context, kind Kind, project, key string, by By) error {
	err := by.Check()
	if err != nil {
		return err
	}

	err = s.change(ctx, wantMedia(kind, project, key), by, func(c *change) error {
		m, known := c.mediaOf(kind)
		if !known {
			return missing(kind, project, key)
		}
		if m.Quarantined == "" && m.Deferred == 0 {
			return fault.New(fault.Conflict, "the %s %s is neither set aside nor deferred", kind,
				key)
		}
		m.pardon()
		return c.mediaEvent(kind, retriedEvent, Because{by.Reason})
	})
	if err != nil {
		return err
	}
	s.wake(ctx, project)
	return nil
}

// endDeferral makes an episode or clip researchable again whose deferral has ended. Its failures
// stay: the next one within a day is deferred longer, or quarantines it. It changes nothing if the
// deferral was ended or prolonged meanwhile.
func (s *Store) endDeferral(ctx context.Context, kind Kind, project, key string) error {
	by := By{Actor: assigner, Component: assigner}
	return s.change(ctx, wantMedia(kind, project, key), by, func(c *change) error {
		m, known := c.mediaOf(kind)
		if !known || m.Deferred == 0 || m.Deferred > c.now {
			return nil
		}
		m.Deferred = 0
		return c.mediaEvent(kind, retriedEvent, Because{"the deferral has ended"})
	})
}
