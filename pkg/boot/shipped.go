package boot

import (
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"archivist/pkg/consumer"
	publisher "archivist/pkg/eventbridge"
	"archivist/pkg/history"
	"archivist/pkg/statistics"
)

// shipped is a consumer that ships with the system.
type shipped struct {
	consumer.Definition
	consumer.Handler
}

// shipped are the consumers that ship with the system. A new one is an entry here. Its handler can
// also be the target of other consumers.
func (s *System) shipped() []shipped {
	t := s.queue.Table
	return []shipped{
		{history.Definition, history.Recorder{Table: t, NewID: newID}},
		{statistics.Definition, statistics.Counter{Table: t, NewID: newID}},
		{publisher.Definition, publisher.Publisher{Client: eventbridge.NewFromConfig(s.cfg), Bus: s.env(EnvBus)}},
	}
}
