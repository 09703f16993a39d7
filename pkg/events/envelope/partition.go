package envelope

// Partition is a part of the log: the events of a collection, or of all subjects without one, or a
// share of these if the log is split. Seqs in it have no gaps, and begin with 1.
type Partition struct {
	Name string `json:"name"`
	Log  string `json:"log"` // the collection, or "site"

	// Generation counts how often the log was split anew. All partitions of a generation come
	// after all of those before it. Part is that of the partition in its generation.
	Generation int `json:"generation,omitempty"`
	Part       int `json:"part,omitempty"`

	Head    int64 `json:"head"`             // the newest seq; 0: it has no events
	Horizon int64 `json:"horizon"`          // the oldest seq that is kept
	Closed  bool  `json:"closed,omitempty"` // nothing is added: a later generation has begun
	Epoch   int64 `json:"epoch"`            // raised when the log is restored from a backup
	Placed  int64 `json:"-"`                // when the newest event got its place, in milliseconds since 1970
}

// Place is where an event is: the seq is its number in the partition, from 1 on.
type Place struct {
	Partition string
	Seq       int64
}
