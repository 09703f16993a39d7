package research

// Position decides whether one more work item is added to the queue of pending work (source: the
// requirement, "Checking Capacity", steps 3 to 6). researchers are those who are present, items the
// work items in the queue that nobody has accepted. position is researchers less items.
//
// At position 0 one more is added: only a negative position is a surplus (step 6). Without
// researchers one work item waits for the first who comes (step 3), and no more (step 4).
func Position(researchers, items int) (position int, add bool) {
	position = researchers - items
	if researchers == 0 {
		return position, items == 0
	}
	return position, position >= 0
}
