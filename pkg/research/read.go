package research

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"archivist/pkg/definition"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

func episodeKey(project, key string) table.Key {
	return mediaSubject(event.Episode, project, key).Key()
}

func clipKey(project, key string) table.Key { return mediaSubject(event.Clip, project, key).Key() }

func leaseKey(id string) table.Key { return subject(event.ResearchLease, id).Key() }

func projectKey(name string) table.Key { return subject(event.ResearchProject, name).Key() }

// rows are rows of some kinds that were read together. Those that do not exist have Rev 0.
type rows map[table.Key]table.Raw

func (s *Store) read(ctx context.Context, keys ...table.Key) (rows, error) {
	return s.Table.Many(ctx, keys)
}

// decode decodes a row, if it exists.
func (all rows) decode(k table.Key, row any) error {
	raw, ok := all[k]
	if !ok {
		return nil
	}
	return raw.Decode(row)
}

func newHead(k table.Key) table.Head { return table.Head{PK: k.PK, SK: k.SK} }

// episode is an episode of a project.
func (all rows) episode(project, key string) (*episodeRow, error) {
	k := episodeKey(project, key)
	r := &episodeRow{Head: newHead(k), Project: project, Name: key, researched: roaring.New()}
	err := all.decode(k, r)
	if err == nil && r.Rev > 0 {
		err = json.Unmarshal([]byte(r.Text), &r.media)
	}
	if err == nil {
		r.researched, err = bits(r.Researched)
	}
	if err != nil {
		return nil, fmt.Errorf("episode %s of %s: %w", key, project, err)
	}
	return r, nil
}

// clip is a clip of a project.
func (all rows) clip(project, key string) (*clipRow, error) {
	k := clipKey(project, key)
	r := &clipRow{Head: newHead(k), Project: project, Name: key}
	err := all.decode(k, r)
	if err == nil && r.Rev > 0 {
		err = json.Unmarshal([]byte(r.Text), &r.media)
	}
	if err != nil {
		return nil, fmt.Errorf("clip %s of %s: %w", key, project, err)
	}
	return r, nil
}

func (all rows) lease(id string) (*leaseRow, error) {
	k := leaseKey(id)
	r := &leaseRow{Head: newHead(k), Lease: Lease{ID: id}}
	return r, all.decode(k, r)
}

// project is a project; one that does not exist is a NotFound.
func (all rows) project(name string) (*projectRow, error) {
	r := &projectRow{}
	err := all.decode(projectKey(name), r)
	if err != nil {
		return nil, err
	}
	if r.Rev == 0 {
		return nil, fault.New(fault.NotFound, "there is no research project %q", definition.Clip(name, 60))
	}
	err = json.Unmarshal([]byte(r.Text), &r.def)
	if err != nil {
		return nil, fault.New(fault.Invalid, "project %s: its row is damaged: %w", name, err)
	}
	return r, nil
}

func (all rows) walk(project string) (*walkRow, error) {
	k := walkKey(project)
	r := &walkRow{Head: newHead(k)}
	return r, all.decode(k, r)
}

func (all rows) samples(project string) (*sampleRow, error) {
	k := sampleKey(project)
	r := &sampleRow{Head: newHead(k)}
	return r, all.decode(k, r)
}

// The same rows, each read alone.

func (s *Store) episodeRow(ctx context.Context, project, key string) (*episodeRow, error) {
	all, err := s.read(ctx, episodeKey(project, key))
	if err != nil {
		return nil, err
	}
	return all.episode(project, key)
}

func (s *Store) clipRow(ctx context.Context, project, key string) (*clipRow, error) {
	all, err := s.read(ctx, clipKey(project, key))
	if err != nil {
		return nil, err
	}
	return all.clip(project, key)
}

func (s *Store) leaseRow(ctx context.Context, id string) (*leaseRow, error) {
	all, err := s.read(ctx, leaseKey(id))
	if err != nil {
		return nil, err
	}
	return all.lease(id)
}

func (s *Store) projectRow(ctx context.Context, name string) (*projectRow, error) {
	all, err := s.read(ctx, projectKey(name))
	if err != nil {
		return nil, err
	}
	return all.project(name)
}
