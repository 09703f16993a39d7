package boot

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"archivist/pkg/kernel/table/restored"
)

// restored says how far restores of the table are. Its client tries again by itself, as that of the rows does not.
func (s *System) restored() *restored.Reader {
	return &restored.Reader{Client: dynamodb.NewFromConfig(s.cfg), Table: s.env(EnvTable),
		Now: s.queue.Now}
}
