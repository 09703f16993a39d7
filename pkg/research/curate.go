package research

import (
	"context"

	"archivist/pkg/fault"
)

// Recorded is the detail of episode.curated and clip.curated: what is known now.
type Recorded struct {
	Media Media `json:"media"`
}

// Curate adds what a curator says of an episode or a clip (source: the requirement; a title is never an
// identity). A record that says nothing new changes nothing. It returns an Invalid for a record that
// cannot be kept, and a NotFound if there is no such project.
func (s *Store) Curate(ctx context.Context, r Curated, by By) (key string, err error) {
	err = r.Check(s.now())
	if err != nil {
		return "", err
	}
	key = r.Key()
	changed := false
	err = s.change(ctx, wantMedia(r.Kind, r.Project, key), by, func(c *change) error {
		m, known := c.mediaOf(r.Kind)
		before := text(*m)
		m.merge(r)
		changed = text(*m) != before
		if !changed {
			return nil
		}
		if r.Kind == Clip && !known && c.project.Numbers >= MaxClips {
			return fault.New(fault.Invalid, "the project %s has %d clips, which is the most that is possible; make "+
				"another project", r.Project, c.project.Numbers)
		}
		return c.recorded(r.Kind, m)
	})
	if err == nil && changed {
		s.wake(ctx, r.Project)
	}
	return key, err
}

// wantMedia names the row of an episode or clip.
func wantMedia(kind Kind, project, key string) want {
	if kind == Clip {
		return want{project: project, clip: key}
	}
	return want{project: project, episode: key}
}

// mediaOf is what is known of the episode or clip of the change, and whether it was known before.
func (c *change) mediaOf(kind Kind) (m *Media, known bool) {
	if kind == Clip {
		return &c.clip.media, c.clip.Rev > 0
	}
	return &c.episode.media, c.episode.Rev > 0
}

// eventTypes are those of an episode and of a clip to which the same happens.
type eventTypes struct{ episode, clip string }

var (
	curated   = eventTypes{"episode.curated", "clip.curated"}
	withdrawn = eventTypes{"episode.withdrawn", "clip.withdrawn"}
	deferred  = eventTypes{"episode.deferred", "clip.deferred"}
	setAside  = eventTypes{"episode.set-aside", "clip.set-aside"}
	retried   = eventTypes{"episode.retried", "clip.retried"}
)

// mediaEvent adds an event of the episode or clip of the change.
func (c *change) mediaEvent(kind Kind, types eventTypes, detail any) error {
	if kind == Clip {
		return c.clipEvent(types.clip, detail)
	}
	return c.episodeEvent(types.episode, detail)
}

func (c *change) recorded(kind Kind, m *Media) error {
	if m.Withdrawn {
		return c.mediaEvent(kind, withdrawn, Recorded{*m})
	}
	return c.mediaEvent(kind, curated, Recorded{*m})
}

// Retry makes an episode or clip that was set aside or deferred researchable again.
func (s *Store) Retry(ctx context.Context, kind Kind, project, key string, by By) error {
	err := checkReason(by)
	if err != nil {
		return err
	}
	err = s.change(ctx, wantMedia(kind, project, key), by, func(c *change) error {
		m, known := c.mediaOf(kind)
		if !known {
			return missing(kind, project, key)
		}
		if m.Aside == "" && m.Deferred == 0 {
			return fault.New(fault.Conflict, "the %s %s is neither set aside nor deferred", kind, key)
		}
		m.pardon()
		return c.mediaEvent(kind, retried, Because{by.Reason})
	})
	if err == nil {
		s.wake(ctx, project)
	}
	return err
}

// endDeferral makes an episode or clip researchable again whose deferral has ended.
func (s *Store) endDeferral(ctx context.Context, kind Kind, project, key string) error {
	by := By{Actor: archivist, Component: archivist}
	return s.change(ctx, wantMedia(kind, project, key), by, func(c *change) error {
		m, known := c.mediaOf(kind)
		if !known || m.Deferred == 0 || m.Deferred > c.now {
			return nil
		}
		m.Deferred = 0
		return c.mediaEvent(kind, retried, Because{"the deferral has ended"})
	})
}

// archivist is the part of the system that assigns work.
const archivist = "pending-work"
