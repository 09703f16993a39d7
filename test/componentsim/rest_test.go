package componentsim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// atRest names what has not come to rest.
func (c *checker) atRest() error {
	if what := c.restOfRuns(); what != "" {
		return fmt.Errorf("%s", what)
	}
	for pk, all := range c.subjects {
		name, is := strings.CutPrefix(pk, "OBJECT#")
		if is && len(all) > 0 && c.items["object:"+name] == nil {
			return fmt.Errorf("there is no item of %s", pk)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.items)) {
		if err := c.itemAtRest(c.items[id]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.registry)) {
		if state := c.registry[name].State; state != "active" {
			return fmt.Errorf("component %s is %s", name, state)
		}
	}
	return nil
}

// itemAtRest names what is not done with an item, by all events that there are.
func (c *checker) itemAtRest(it *item) error {
	if n := int64(len(c.subjects[subjectPK(it.id)])); it.is.Applied != n {
		return fmt.Errorf("%s knows %d events of its subject, which has %d", it.id, it.is.Applied, n)
	}
	h := c.historyOf(it.id, it.is.Applied, it.is.Version)
	for _, d := range c.active() {
		place, v := c.placeIn(it, d.Name), h.judge(&d)
		class, _, _ := strings.Cut(place, "#")
		switch {
		case place != h.place(&d, &it.is):
			return fmt.Errorf("%s is at %q for %s; it should be at %q", it.id, place, d.Name, h.place(&d, &it.is))
		case class == "running" && !d.Paused:
			return fmt.Errorf("%s is claimed by %s", it.id, d.Name)
		case v.ready && v.from > time.Now().Add(12*time.Hour).UnixMilli(): // it is repeated days later
		case v.ready && !d.Paused:
			return fmt.Errorf("%s is ready for %s, and was not worked on: %+v", it.id, d.Name, v)
		case v.deep:
			c.deep = true
		}
	}
	return nil
}
