//go:build !crash

package crash

import (
	"github.com/aws/smithy-go/middleware"

	"archivist/pkg/events/consumer"
	"archivist/pkg/ingest/queue"
)

// Injector does nothing in this build.
type Injector struct{}

// New returns an Injector that does nothing.
func New(func(name string) string) *Injector { return &Injector{} }

// CountWrites does nothing.
func (*Injector) CountWrites(*middleware.Stack) error { return nil }

// Step returns the step unchanged.
func (*Injector) Step(_ string, step queue.Step) queue.Step { return step }

// Handler returns the handler unchanged.
func (*Injector) Handler(h consumer.Handler) consumer.Handler { return h }
