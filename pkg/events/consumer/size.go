package consumer

import "encoding/json"

// Limits of what a target outside of this process is called with, in bytes of JSON. A
// function takes 6 MB in a call, a queue 1 MiB in a message ("Lambda quotas" and "Amazon SQS
// message quotas" in their developer guides); a message of more than 256 KiB counts as
// several, so payloads are left out earlier.
const (
	// maxCallBytes is of a whole call of a function, and maxItemBytes of one item in it.
	maxCallBytes = 5_000_000
	maxItemBytes = 1_000_000
	// maxMessageBytes is of a message: one item.
	maxMessageBytes = 200_000
)

// fitting is how many of the next units one call of the target has: at least one, at most the
// consumer's Batch, and no more than fit into a call. The payload of an event that is too large is
// left out: the target reads it by the event's id. A handler in this process is called with
// everything.
func (n *run) fitting(all []*unit) int {
	count := min(len(all), n.c.Batch)
	t := n.c.Target
	if t.Handler != "" {
		return count
	}

	limit := maxItemBytes
	if t.Queue != "" {
		limit = maxMessageBytes
	}

	total := 0
	for i, u := range all[:count] {
		total += u.shrink(limit)
		if total > maxCallBytes && i > 0 {
			return i
		}
	}
	return count
}

// shrink leaves the payload of a unit out if it has more bytes than limit, and returns its
// size.
func (u *unit) shrink(limit int) int {
	size := jsonSize(u.item)
	if size <= limit {
		return size
	}
	u.item.Event = u.item.Facts()
	u.item.Reference = true
	return jsonSize(u.item)
}

// jsonSize is the size of an item as a target gets it, in bytes.
func jsonSize(it Item) int {
	b, err := json.Marshal(it)
	if err != nil {
		return 0 // the call returns the error
	}
	return len(b)
}
