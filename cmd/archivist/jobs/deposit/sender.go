package deposit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/backoff"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// Sender sends contents to an upload. It is used once.
type Sender struct {
	Client *v1.Client
	// HTTP sends the contents, to the storage.
	HTTP *http.Client
	// Wait waits before a repeat.
	Wait func(context.Context, time.Duration) error
	// Parallel is how many requests are sent at once.
	Parallel int
	Progress *terminal.Transfer

	mu     sync.Mutex
	stored int
	// resumed are contents in parts of which it is known what was there before.
	resumed map[string]bool
}

// Stored is how many contents the upload has: those that were sent, and those that were there.
func (s *Sender) Stored() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored
}

const (
	// atOnce is how many files the API takes in one request.
	atOnce = 100
	// tries is how often a request is made while only its network or its server fails: for some minutes, with waits.
	tries = 12
	// rounds is how often the API is asked anew for requests, of which none was accepted.
	rounds = 4
)

// waits are those between the tries of a request.
var waits = backoff.Policy{First: time.Second, Most: 30 * time.Second}

// have counts contents that the upload has now.
func (s *Sender) have(n, of int) {
	s.mu.Lock()
	s.stored += n
	s.mu.Unlock()
	s.title(of)
}

// title says how many contents the upload has.
func (s *Sender) title(of int) {
	s.Progress.Title(fmt.Sprintf("%d of %s sent", s.Stored(), terminal.Count(of, "file")))
}

// Again makes a request again while it is Unavailable, with waits between the tries. So a short failure of the network
// is no failure of the deposit.
func (s *Sender) Again(ctx context.Context, request func() error) error {
	for try := 1; ; try++ {
		err := request()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !fault.Is(err, fault.Unavailable) || try == tries {
			return err
		}
		if err := s.Wait(ctx, waits.Delay(try, rand.Float64)); err != nil {
			return err
		}
	}
}
