package researcher

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	v1 "archivist/pkg/api/v1"
)

// API is the server of a project, by HTTPS. It can be used by several goroutines.
type API struct {
	Client   *v1.Client // with a key that has the role researcher:PROJECT
	Project  string
	Name     string // of the researcher
	Host     string // of the computer, for people; may be empty
	Software string // name and version of the program, for people; may be empty
	Now      func() time.Time

	mu    sync.Mutex
	asked map[string]time.Time // when it was asked whether a lease has ended
}

// Heartbeat says that the researcher is present. It returns when that is to be said again, as the
// server wants it.
func (a *API) Heartbeat(ctx context.Context, capacity int) (renew time.Duration, err error) {
	welcome, err := a.Client.Hello(ctx, a.Project, v1.ResearchHello{
		Researcher: a.Name,
		Capacity:   capacity,
		Host:       a.Host,
		Software:   a.Software,
	})
	return time.Duration(welcome.RenewSeconds) * time.Second, err
}

// Leave says that the researcher leaves.
func (a *API) Leave(ctx context.Context) error { return a.Client.Bye(ctx, a.Project, a.Name) }

// Next returns the next work item of the queue, nil if none waits.
func (a *API) Next(ctx context.Context, token string) (*Work, error) {
	w, err := a.Client.NextWork(ctx, a.Project, v1.ResearchNext{Researcher: a.Name, Token: token})
	if w == nil || err != nil {
		return nil, err
	}
	return workOf(*w)
}

// Accept accepts a work item whose message was received from the queue.
func (a *API) Accept(ctx context.Context, lease, token string) (*Work, error) {
	w, err := a.Client.AcceptWork(ctx, a.Project, v1.ResearchAccept{Lease: lease,
		ResearchNext: v1.ResearchNext{Researcher: a.Name, Token: token}})
	if err != nil {
		return nil, err
	}
	return workOf(w)
}

// workOf is a work item as the API describes it. Settings are passed on as they are stored: only
// the analysis knows them.
func workOf(w v1.ResearchWork) (*Work, error) {
	out := &Work{
		Lease:    w.Lease.ID,
		Project:  w.Lease.Project,
		Analysis: w.Lease.Analysis,
		Method:   w.Analysis.Name,
		Episode:  subject(w.Episode),
	}

	for _, c := range w.Clips {
		out.Clips = append(out.Clips, subject(c))
	}

	var err error
	if len(w.Analysis.Settings) > 0 {
		out.Settings, err = json.Marshal(w.Analysis.Settings)
	}
	return out, err
}

// subject is an episode or clip as the API describes it.
func subject(r v1.ResearchRecording) Subject {
	return Subject{r.Key, r.Title, Media{r.URL, r.Size, r.SHA256}}
}

// asking is how often it is asked whether a lease has ended: rarely, because it hardly ever has.
const asking = time.Minute

// Report sends a report. It is stored soon, by another function: no error means that it was taken.
// Now and then it asks afterwards whether the lease has ended, so that a researcher whose lease was
// revoked does not go on for hours.
func (a *API) Report(ctx context.Context, r Report) (Receipt, error) {
	err := a.Client.ReportWork(ctx, r.Project, r)
	if err != nil || !a.asks(r) {
		return Receipt{}, err
	}
	lease, err := a.Client.ResearchLease(ctx, r.Project, r.Lease)
	if err != nil {
		return Receipt{}, nil // the report was taken, and that is what counts
	}
	return Receipt{Ended: lease.Ended != ""}, nil
}

// asks reports whether it is time to ask for the lease of a report: not at its first one, because
// it was accepted just before, and not at its last one, which forgets it.
func (a *API) asks(r Report) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked == nil {
		a.asked = map[string]time.Time{}
	}

	if r.Final {
		delete(a.asked, r.Lease)
		return false
	}

	last, known := a.asked[r.Lease]
	if known && a.Now().Sub(last) < asking {
		return false
	}

	a.asked[r.Lease] = a.Now()
	return known
}
