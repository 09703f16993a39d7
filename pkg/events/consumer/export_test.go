package consumer

import "context"

// ShowAll is how far all consumers are, as a tick counts it.
func (s *Store) ShowAll(ctx context.Context) (all []Status, unread int, err error) {
	list, err := s.List(ctx)
	if err != nil {
		return nil, 0, err
	}
	partitions, err := s.Log.Partitions(ctx)
	if err != nil {
		return nil, 0, err
	}
	seen := sighted{list: list}
	for _, c := range list {
		at, err := s.places(ctx, c.Name)
		if err != nil {
			return nil, 0, err
		}
		seen.at = append(seen.at, at)
	}
	n, err := s.excerpts(ctx, behindIn(partitions, &seen, anyone), 0, allReads)
	if err != nil {
		return nil, 0, err
	}
	all, err = s.statuses(ctx, partitions, &seen, anyone, n)
	return all, len(n.missed), err
}
