package researcher

import (
	"context"
	"encoding/json"
	"time"

	v1 "archivist/pkg/api/v1"
)

// Work is a work item.
type Work struct {
	Lease    string          // its id
	Project  string          // its name
	Analysis string          // name@version, as reports name it
	Method   string          // the name of the analysis
	Settings json.RawMessage // of the analysis
	Episode  Subject
	Clips    []Subject // in the order of research
}

// Subject is an episode or clip.
type Subject struct {
	Key   string // as reports name it
	Title string // for people; may be empty
	Media
}

// Media says where a recording is.
type Media struct {
	URL    string
	Size   int64  // bytes; 0 = not known
	SHA256 string // 64 hexadecimal digits; "" = not known
}

// Report is what is said of a work item.
type Report = v1.ResearchReport

// Kinds of problems.
const (
	Rejected = "rejected" // the recording can never be researched
	Failed   = "failed"   // it could not be read now
)

// Receipt is the answer to a report.
type Receipt struct {
	Ended bool // the lease: nobody waits for the rest of the work item
}

// Server is where research is reported. Errors of the kind Unavailable may be gone another time;
// after one of Invalid, NotFound, Conflict or Denied the same request fails again. Its methods are
// called by several goroutines.
type Server interface {
	// Heartbeat says that the researcher is present for a while, and how many work items it takes at
	// once. It returns when it is to be said again.
	Heartbeat(ctx context.Context, capacity int) (renew time.Duration, err error)
	// Next returns a work item that is accepted, nil if there is none now. A request with the same
	// token is answered again.
	Next(ctx context.Context, token string) (*Work, error)
	// Accept accepts the work item of a message. It returns a Conflict or a NotFound if it is no
	// longer to be had, and a Held if it is for another researcher, or this one is paused.
	Accept(ctx context.Context, lease, token string) (*Work, error)
	// Report is taken once, however often it comes.
	Report(ctx context.Context, r Report) (Receipt, error)
	// Leave says that the researcher leaves: no work is made for it any more.
	Leave(ctx context.Context) error
}

// Source is where work items come from.
type Source interface {
	// Next returns a work item that is accepted, nil if there is none now. It asks for none after
	// stop is done. A request with the same token is answered again.
	Next(ctx, stop context.Context, token string) (*Work, error)
}

// Next receives work items from the server.
type Next struct{ Server Server }

// Next asks the server. What it has accepted is not lost by a stop: the request ends by itself.
func (n Next) Next(ctx, _ context.Context, token string) (*Work, error) {
	return n.Server.Next(ctx, token)
}
