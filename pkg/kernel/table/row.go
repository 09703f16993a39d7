package table

// Key is the primary key of a row. Both are never empty. PK is a kind and an id ("JOB#01J…"),
// SK the kind again or what sorts the rows of one id.
type Key struct{ PK, SK string }

// String returns the key as text.
func (k Key) String() string { return k.PK + "/" + k.SK }

// Head has the attributes of every row. Every write of the row increments Rev; TxID is
// the id of the transaction that wrote it last. WorkPK and WorkSK put the row into the
// index "work", ListPK and ListSK into "list"; empty means none. ExpiresAt is when
// DynamoDB may delete the row (TTL, seconds since 1970); it is never a lock or a
// time-out. Schema is the version of the row's form; see Upcaster.
//
// Rev is 0 for a row that does not exist yet. It is the fence of all work on the row: a
// worker that read it before another wrote cannot write any more. An index entry needs both
// of its keys.
type Head struct {
	PK        string `dynamo:"pk,hash"`
	SK        string `dynamo:"sk,range"`
	Rev       int64  `dynamo:"rev"`
	TxID      string `dynamo:"wid"`
	WorkPK    string `dynamo:"place,omitempty"`
	WorkSK    string `dynamo:"ranking,omitempty"`
	ListPK    string `dynamo:"shelf,omitempty"`
	ListSK    string `dynamo:"since,omitempty"`
	ExpiresAt int64  `dynamo:"gone,omitempty"`

	Schema int64 `dynamo:"schema_no,omitempty"`
}

// Key returns the row's primary key.
func (h *Head) Key() Key { return Key{h.PK, h.SK} }

func (h *Head) head() *Head { return h }

// Row is a pointer to a struct that embeds Head. head is not exported, so nothing else is a
// row.
type Row interface {
	Key() Key
	head() *Head
}
