package ocfl

import (
	"encoding/json"
	"fmt"
)

// summary is the form of a Stored in a cache. It is stored, so a field that gets another meaning
// needs another name.
type summary struct {
	ID       string                    `json:"id"`
	Head     int                       `json:"head"`
	Digest   string                    `json:"digest"`
	ETag     string                    `json:"etag"`
	From     int64                     `json:"from"`
	To       int64                     `json:"to"`
	Versions map[int]Version           `json:"versions"`
	System   map[int]map[string]string `json:"system"`
	Content  map[string]string         `json:"content"`
	SHA256   map[string]string         `json:"sha256"`
}

// Summary is the object as a text that ReadSummary reads. It is small: the producer's files are
// left out.
func (s *Stored) Summary() ([]byte, error) {
	return json.Marshal(summary{s.ID, s.Head, s.Digest, s.etag, s.from, s.to, s.Versions, s.system,
		s.content,
		s.sha256})
}

// ReadSummary reads a Summary. It may be out of date: see Same. The result knows no size of the
// inventory.
func ReadSummary(text []byte) (*Stored, error) {
	var m summary
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("ocfl: summary of an inventory: %w", err)
	}
	return &Stored{
		ID:       m.ID,
		Head:     m.Head,
		Digest:   m.Digest,
		etag:     m.ETag,
		from:     m.From,
		to:       m.To,
		Versions: m.Versions,
		system:   m.System,
		content:  m.Content,
		sha256:   m.SHA256,
	}, nil
}

// InventoryBytes is the size of the root inventory that was read; 0 if only its summary was.
func (s *Stored) InventoryBytes() int64 { return s.size }
