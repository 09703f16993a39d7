package workflow

// parsing is what is read from files.
type parsing struct {
	sources []*source
	drafts  []*draft // tasks, COMMIT too, in the order of the files
	byName  map[string]*draft
	large   *Problem
}

// draft is a task as it is read, with places for what is found out later, when all tasks are known.
type draft struct {
	task    Task
	source  *source
	at      *node            // of its name
	keys    map[string]*node // values by key
	depends []*node          // by edge
	cancels []*node          // by task
	inputs  []*node          // by input
}

// refuse adds a problem at the value of a key.
func (d *draft) refuse(key, format string, args ...any) {
	n := d.keys[key]
	if n == nil {
		n = d.at
	}
	d.source.refuse(n, format, args...)
}
