package component

// own puts the items before others that are of a slot, so that the instances of a component do not
// all begin with the same. Each can still work on all: a slot without a run leaves nothing behind.
func (c *compiled) own(items []string, slot int) []string {
	if c.Instances == 1 {
		return items
	}

	var mine, others []string
	for _, id := range items {
		if int(shard(id))%c.Instances == slot%c.Instances {
			mine = append(mine, id)
		} else {
			others = append(others, id)
		}
	}
	return append(mine, others...)
}

func first(items []string, n int) []string { return items[:min(n, len(items))] }

func rest(items []string, n int) []string { return items[min(n, len(items)):] }

// deal deals items out to lanes, at most so many, one to each in turn: so the first items are begun
// first.
func deal(items []string, most int) []Lane {
	lanes := make([]Lane, min(most, len(items)))
	for i, id := range items {
		l := &lanes[i%len(lanes)]
		l.Number = i % len(lanes)
		l.Items = append(l.Items, id)
	}
	return lanes
}
