package research

// CapacitySurplus decides whether one more work item is added to the queue of pending work (source:
// the requirement, "Checking Capacity", steps 3 to 6). researchers are those who are present, items
// the work items in the queue that nobody has accepted. surplus is researchers less items: how many
// researchers have no work item waiting for them. The requirement calls it the position.
//
// At 0 one more is added: only below 0 are there too many work items (step 6). Without researchers
// one work item waits for the first who comes (step 3), and no more (step 4).
func CapacitySurplus(researchers, items int) (surplus int, add bool) {
	surplus = researchers - items
	if researchers == 0 {
		return surplus, items == 0
	}
	return surplus, surplus >= 0
}
