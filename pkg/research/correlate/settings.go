package correlate

import (
	"bytes"
	"encoding/json"
	"fmt"

	"archivist/pkg/kernel/fault"
)

// Name is the name of the analysis, as projects configure it.
const Name = "correlation"

// Settings are those of the analysis, as a project configures them. Zero values are defaults.
type Settings struct {
	// Threshold is the least score of a hit, 0.2 to 0.99. The default, 0.5, finds a clip beneath
	// other sound of three times its energy.
	Threshold float64 `json:"threshold,omitempty"`

	// Rate is how many samples per second are compared, 4,000 to 48,000. The default, 8,000, has
	// what lies below 4 kHz: most of speech and music. Twice the rate takes twice the time.
	Rate int `json:"rate,omitempty"`
}

// Check sets the defaults, and returns an Invalid if a value cannot be used.
func (s *Settings) Check() error {
	if s.Threshold == 0 {
		s.Threshold = 0.5
	}

	if s.Rate == 0 {
		s.Rate = 8000
	}

	// Asked in this way, a value that is not a number fails, too.
	if !(s.Threshold >= 0.2 && s.Threshold <= 0.99) {
		return fault.New(fault.Invalid, "threshold: found %v; expected 0.2 to 0.99", s.Threshold)
	}

	if s.Rate < 4000 || s.Rate > 48000 {
		return fault.New(fault.Invalid, "rate: found %d; expected 4000 to 48000", s.Rate)
	}
	return nil
}

// parse reads settings from JSON, and sets the defaults. No JSON is all defaults. Fields that do
// not exist are an Invalid: a misspelt one would be lost in silence.
func parse(data []byte) (s Settings, err error) {
	if len(bytes.TrimSpace(data)) > 0 {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err := d.Decode(&s); err != nil {
			return s, fault.New(fault.Invalid, "settings of the analysis %s: %w", Name, err)
		}
		if d.More() {
			return s, fault.New(fault.Invalid,
				"settings of the analysis %s: more than one JSON value", Name)
		}
	}

	if err := s.Check(); err != nil {
		return s, fault.New(fault.Invalid, "settings of the analysis %s: %s", Name, fmt.Sprint(err))
	}
	return s, nil
}
