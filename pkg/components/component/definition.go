package component

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
)

// Limits of a definition, each with its reason.
const (
	MaxDefinition = 32 << 10
	// MaxNames is of events in a list: all are looked at for each item.
	MaxNames = 20
	// MaxIDs is of items of an explicit set: they are part of the definition.
	MaxIDs      = 500
	MaxMaxItems = 100_000
	// MaxConcurrency: Step Functions runs at most so many iterations of a Map state at once.
	MaxConcurrency = 40
	// MaxInstances: each has a lease of its own.
	MaxInstances = 10
	// MaxItemSeconds: a function ends after 15 minutes; the rest is for storing the result. A task
	// of ECS has no such limit.
	MaxItemSeconds = 14 * 60
	MaxTaskSeconds = 24 * 3600
	MaxRunSeconds  = 7 * 24 * 3600
	MaxRetries     = 10
	MaxBackoff     = 24 * 3600
	MaxMaxResults  = 1000
	MaxEveryDays   = 100 * 365
	// MaxSubnets and MaxGroups, of security, are those of awsvpc ("AwsVpcConfiguration", Amazon ECS API reference).
	MaxSubnets = 16
	MaxGroups  = 5
	// MaxMaxDepth: an item's row names the components of the chains.
	MaxMaxDepth = 30
	// AnyDepth is the MaxDepth of a component that ships and changes no item's content: no cycle goes through it,
	// and it must not leave out an item because other components made a long chain.
	AnyDepth = -1

	// MaxComponents is how many there can be: one transaction changes an item's places in the lines
	// of all.
	MaxComponents = 30
)

// Stopped is the name of the event with which a person stops work on an item. Each component has
// it among those that an item must not have.
const Stopped = "Manually_stopped"

// Definition is a component as it is configured, in JSON or YAML. The zero value of a field is its
// default, which Check sets. Empty lists are no conditions; all that are not empty must hold.
// (Source: "Advanced Triggering" and "Autonomous Component Life Cycle" of the autonomous-components
// text.)
type Definition struct {
	Name        string `json:"name"`
	Version     int    `json:"version,omitempty"` // raised by each change
	Description string `json:"description,omitempty"`

	// Event is the name of the event that it records. It is in Future or in Old, so that the work
	// on an item ends.
	Event string `json:"event"`

	// The newest event of each name counts.
	// The item has the events of PastSuccess, with success, and those of PastFailure, with failure.
	PastSuccess []string `json:"pastSuccess,omitempty"`
	PastFailure []string `json:"pastFailure,omitempty"`

	// It does not have the events of Future, with any outcome.
	Future []string `json:"future,omitempty"`

	// It does not have the events of Old, or its content was changed since by another.
	Old []string `json:"old,omitempty"`

	// Types: the item has all of these.
	Types []string `json:"types,omitempty"`

	// Items nil: all that meet the conditions.
	Items *Items `json:"items,omitempty"`

	// MaxItems is of a run, and Concurrency is how many items one run works on at once.
	MaxItems    int `json:"maxItems,omitempty"`
	Concurrency int `json:"concurrency,omitempty"`

	// Instances is how many runs there are at once, by default 1. With more, robots share the line;
	// each still works on an item alone.
	Instances int      `json:"instances,omitempty"`
	Timeout   *Timeout `json:"timeout,omitempty"`

	// Schedule is "rate(5 minutes)" or a cron expression of five fields; "": none. TimeZone is that
	// of a cron expression, by default UTC.
	Schedule string `json:"schedule,omitempty"`
	TimeZone string `json:"timeZone,omitempty"`

	// Wake: it runs as soon as an item is ready.
	Wake     bool     `json:"wake,omitempty"`
	Runnable Runnable `json:"runnable"`

	// Retry is of items that failed; nil: a person or a change must come first.
	Retry *Retry `json:"retry,omitempty"`

	// EveryDays: its event in Old is old after so many days; 0: only a change makes it old.
	EveryDays  int `json:"everyDays,omitempty"`
	MaxResults int `json:"maxResults,omitempty"`

	// MaxDepth is of causes; deeper, it is not started, which is an alarm.
	MaxDepth int `json:"maxDepth,omitempty"`

	// Paused: a new component does not run until it is resumed.
	Paused bool `json:"paused,omitempty"`
}

// Items selects items: those of an explicit set, or those that a filter of package filter selects,
// whatever actions it names.
type Items = definition.ComponentItems

// Timeout ends work that takes too long, in seconds: on an item, which is then a failure, and of a
// run, which takes no more items.
type Timeout = definition.ComponentTimeout

// Runnable is what does the work: exactly one is set.
type Runnable = definition.ComponentRunnable

// Task is a container of Amazon ECS on Fargate. It gets the Work as JSON in the environment
// variable ARCHIVIST_WORK, and answers with SendTaskSuccess: a Result of at most 100 KB, for the
// token in ARCHIVIST_TOKEN. A larger one, with what the execution knows of the item, exceeds what
// an execution may pass on, 256 KB, and ends the run ("Step Functions service quotas").
type Task = definition.ComponentTask

// Retry says how often an item that failed is tried again, and when: after the backoff, which
// doubles each time.
type Retry = definition.ComponentRetry

// Defaults of a definition.
const (
	defaultMaxItems    = 1000
	defaultConcurrency = 10
	defaultItemSeconds = 60
	defaultRunSeconds  = 3600
	defaultBackoff     = 60
	defaultMaxResults  = 100
	defaultMaxDepth    = 20
)

// eventNames are names of the events of components. They have no dot, so they differ from the types
// of the system's own events.
var eventNames = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,49}$`)

// arns are ARNs of Amazon ECS.
var arns = regexp.MustCompile(`^arn:aws[a-z-]*:ecs:[a-z0-9-]+:\d{12}:(cluster|task-definition)/[A-Za-z0-9_/:-]{1,300}$`)

// Parse reads a definition from JSON or YAML. Unknown and repeated fields, and more than one
// document, are an Invalid. It does not check the values.
func Parse(data []byte) (Definition, error) {
	return definition.Parse[Definition](data, MaxDefinition)
}

// Check sets the defaults of a definition and returns an Invalid that names the first field that is
// not accepted, and why. It does not know the functions that there are, nor the other components;
// the Store checks these.
func (d *Definition) Check() error {
	d.setDefaults()
	return definition.Check(d.checkTexts, d.checkNames, d.checkEnd, d.checkItems, d.checkNumbers,
		d.checkSchedule, d.checkRunnable)
}

// setDefaults sets the fields that are zero. What is behind a pointer is replaced, not changed: a
// copy of the definition may share it.
func (d *Definition) setDefaults() {
	d.MaxItems = cmp.Or(d.MaxItems, defaultMaxItems)
	d.Concurrency = cmp.Or(d.Concurrency, defaultConcurrency)
	d.Instances = cmp.Or(d.Instances, 1)
	d.MaxResults = cmp.Or(d.MaxResults, defaultMaxResults)
	d.MaxDepth = cmp.Or(d.MaxDepth, defaultMaxDepth)
	t := Timeout{}
	if d.Timeout != nil {
		t = *d.Timeout
	}

	d.Timeout = &Timeout{Item: cmp.Or(t.Item, defaultItemSeconds),
		Run: cmp.Or(t.Run, defaultRunSeconds)}
	if d.Retry != nil {
		d.Retry = &Retry{Max: d.Retry.Max, Backoff: cmp.Or(d.Retry.Backoff, defaultBackoff)}
	}

	if d.Schedule != "" {
		d.TimeZone = cmp.Or(d.TimeZone, "UTC")
	}
}

// checkTexts checks the texts that name the component and its event.
func (d *Definition) checkTexts() error {
	switch {
	case !definition.Names.MatchString(d.Name):
		return fault.New(fault.Invalid,
			"name: %q: expected 1 to 50 small letters, digits and hyphens, "+
				"beginning with a letter", definition.Clip(d.Name, 60))
	case d.Event == Stopped:
		return fault.New(fault.Invalid,
			"event: %s is what a person records to stop work on an item", Stopped)
	}
	return cmp.Or(definition.CheckDescription(d.Description), CheckEventName("event", d.Event))
}

// CheckEventName refuses what cannot be the name of an event of a component, or of a person.
func CheckEventName(field, name string) error {
	if eventNames.MatchString(name) {
		return nil
	}
	return fault.New(fault.Invalid,
		"%s: %q: expected 1 to 50 letters, digits, hyphens and underscores, beginning "+
			"with a letter", field, definition.Clip(name, 60))
}

// checkNames checks the lists of names of events. A name that is there twice is refused, since it
// is a mistake.
func (d *Definition) checkNames() error {
	for _, l := range d.lists() {
		if len(l.names) > MaxNames {
			return fault.New(fault.Invalid, "%s: %d names; at most %d are accepted", l.how,
				len(l.names), MaxNames)
		}
		for i, name := range l.names {
			if slices.Contains(l.names[:i], name) {
				return fault.New(fault.Invalid, "%s: %s is there twice", l.how, name)
			}
			if _, core := envelope.KindOf(name); core && l.how != "old" {
				continue
			}
			if err := CheckEventName(l.how, name); err != nil {
				return err
			}
		}
	}
	return d.checkConflicts()
}

// checkConflicts refuses conditions that no item can ever meet.
func (d *Definition) checkConflicts() error {
	for _, name := range d.PastSuccess {
		if slices.Contains(d.PastFailure, name) {
			return fault.New(fault.Invalid,
				"pastFailure: %s is in pastSuccess too; the newest event has one outcome", name)
		}
	}

	for _, name := range append(slices.Clone(d.PastSuccess), d.PastFailure...) {
		if slices.Contains(d.Future, name) {
			return fault.New(fault.Invalid,
				"future: %s is in pastSuccess or pastFailure too; no item both has it and "+
					"does not have it", name)
		}
	}
	return nil
}

// checkEnd refuses a component that would work on an item again and again. (Its own event in future
// ends that for good, in old until a change.)
func (d *Definition) checkEnd() error {
	if slices.Contains(d.Future, d.Event) || slices.Contains(d.Old, d.Event) {
		return nil
	}
	return fault.New(fault.Invalid,
		"event: %s is neither in future nor in old, so the component would work on "+
			"the same items for ever; add it to future (once for each item) or to old (again after each change)",
		d.Event)
}

// checkItems checks which items are selected, and puts their ids into their normal form. A filter
// can only ask what an item is, not what an event says: it is evaluated for the item, whatever
// happened last.
func (d *Definition) checkItems() error {
	if len(d.Types) > MaxNames {
		return fault.New(fault.Invalid, "types: %d types; at most %d are accepted", len(d.Types),
			MaxNames)
	}

	for _, t := range d.Types {
		if err := CheckType(t); err != nil {
			return err
		}
	}

	if d.Items == nil {
		return nil
	}

	switch {
	case (len(d.Items.IDs) == 0) == (d.Items.Filter == ""):
		return fault.New(fault.Invalid, "items: expected either ids or a filter")
	case len(d.Items.IDs) > MaxIDs:
		return fault.New(fault.Invalid, "items.ids: %d ids; at most %d are accepted",
			len(d.Items.IDs), MaxIDs)
	}

	for i, id := range d.Items.IDs {
		kind, subject, err := ParseID(id)
		if err != nil {
			return fault.New(fault.Invalid, "items.ids: %w", err)
		}
		d.Items.IDs[i] = kind + ":" + subject
	}

	if d.Items.Filter == "" {
		return nil
	}

	f, err := filter.Compile(d.Items.Filter)
	if err != nil {
		return fault.New(fault.Invalid, "items.filter: %w", err)
	}

	for _, name := range f.Fields() {
		if name != "id" && name != "parent" {
			return fault.New(fault.Invalid,
				"items.filter: %s is what an event says, and items are selected by what "+
					"they are; expected id or parent", name)
		}
	}
	return nil
}

// itemTypes are names of types of items.
var itemTypes = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.:-]{0,99}$`)

// CheckType refuses what cannot be the type of an item.
func CheckType(name string) error {
	if itemTypes.MatchString(name) {
		return nil
	}
	return fault.New(fault.Invalid,
		"types: %q: expected 1 to 100 letters, digits and . _ : -, beginning with a letter",
		definition.Clip(name, 110))
}

// checkNumbers checks the numbers against their limits, after the defaults are set. An item may
// take as long as what works on it: a function's time is bounded, a task's is not.
func (d *Definition) checkNumbers() error {
	longest := MaxItemSeconds
	if d.Runnable.Task != nil {
		longest = MaxTaskSeconds
	}

	err := cmp.Or(
		definition.Within("maxItems", d.MaxItems, 1, MaxMaxItems),
		definition.Within("concurrency", d.Concurrency, 1, MaxConcurrency),
		definition.Within("instances", d.Instances, 1, MaxInstances),
		definition.Within("timeout.itemSeconds", d.Timeout.Item, 1, longest),
		definition.Within("timeout.runSeconds", d.Timeout.Run, d.Timeout.Item, MaxRunSeconds),
		definition.Within("maxResults", d.MaxResults, 1, MaxMaxResults),
		d.checkDepth())
	if err != nil {
		return err
	}

	if d.EveryDays != 0 {
		if err := definition.Within("everyDays", d.EveryDays, 1, MaxEveryDays); err != nil {
			return err
		}
		if !slices.Contains(d.Old, d.Event) {
			return fault.New(fault.Invalid,
				"everyDays: the component's event, %s, must be in old", d.Event)
		}
	}

	if d.Retry == nil {
		return nil
	}
	return cmp.Or(definition.Within("retry.max", d.Retry.Max, 1, MaxRetries),
		definition.Within("retry.backoffSeconds", d.Retry.Backoff, 1, MaxBackoff))
}

func (d *Definition) checkDepth() error {
	if d.MaxDepth == AnyDepth && d.Runnable.Function != "" {
		return nil
	}
	return definition.Within("maxDepth", d.MaxDepth, 1, MaxMaxDepth)
}

// checkSchedule refuses a schedule that has no times. Without a schedule, a component runs when it
// is woken or started.
func (d *Definition) checkSchedule() error {
	switch {
	case d.Schedule != "":
		_, err := definition.ParseSchedule(d.Schedule, d.TimeZone)
		return err
	case d.TimeZone != "":
		return fault.New(fault.Invalid, "timeZone: only a component with a schedule has one")
	}
	return nil
}

// checkRunnable checks the form of what does the work.
func (d *Definition) checkRunnable() error {
	r, set := d.Runnable, 0
	for _, is := range []bool{r.Function != "", r.Lambda != "", r.Task != nil} {
		if is {
			set++
		}
	}

	switch {
	case set != 1:
		return fault.New(fault.Invalid,
			"runnable: %d of function, lambda and task are set; expected one", set)
	case r.Lambda != "" && !definition.Functions.MatchString(r.Lambda):
		return fault.New(fault.Invalid, "runnable.lambda: %q: expected the ARN of a function",
			definition.Clip(r.Lambda, 200))
	case r.Task != nil:
		return checkTask(r.Task)
	}
	return nil
}

// awsNames are names of containers, and ids of subnets and security groups.
var awsNames = regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`)

// checkTask checks the form of what a task names.
func checkTask(t *Task) error {
	switch {
	case !arns.MatchString(t.Cluster) || !strings.Contains(t.Cluster, ":cluster/"):
		return fault.New(fault.Invalid, "runnable.task.cluster: %q: expected the ARN of a cluster",
			definition.Clip(t.Cluster, 200))
	case !arns.MatchString(t.Definition) || !strings.Contains(t.Definition, ":task-definition/"):
		return fault.New(fault.Invalid,
			"runnable.task.taskDefinition: %q: expected the ARN of a task definition",
			definition.Clip(t.Definition, 200))
	case !awsNames.MatchString(t.Container):
		return fault.New(fault.Invalid,
			"runnable.task.container: %q: expected the name of a container",
			definition.Clip(t.Container, 60))
	case len(t.Subnets) == 0 || len(t.Subnets) > MaxSubnets || len(t.Groups) > MaxGroups:
		return fault.New(fault.Invalid,
			"runnable.task: expected 1 to %d subnets and at most %d security groups",
			MaxSubnets, MaxGroups)
	}

	for _, name := range append(slices.Clone(t.Subnets), t.Groups...) {
		if !awsNames.MatchString(name) {
			return fault.New(fault.Invalid,
				"runnable.task: %q: expected the id of a subnet or security group",
				definition.Clip(name, 60))
		}
	}
	return nil
}

// itemTime is the time-out of an item.
func (d *Definition) itemTime() time.Duration { return time.Duration(d.Timeout.Item) * time.Second }

// named is a list of names of events, by the name of the condition.
type named struct {
	how   string
	names []string
}

// lists are the conditions on events.
func (d Definition) lists() []named {
	return []named{{"pastSuccess", d.PastSuccess}, {"pastFailure", d.PastFailure}, {"future", d.Future}, {"old", d.Old}}
}
