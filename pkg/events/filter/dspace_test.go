package filter_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/filter"
)

// DSpace's names in the order of their bits (source: DSpace, org.dspace.core.Constants
// typeText, and org.dspace.event.Event eventTypeText), each with ours for the same thing.
var (
	dspaceTypes = [][2]string{{"BITSTREAM", "File"}, {"BUNDLE", "Bundle"}, {"ITEM", "Object"},
		{"COLLECTION", "Collection"}, {"COMMUNITY", "Community"}, {"SITE", "Site"}, {"GROUP", "Group"},
		{"EPERSON", "User"}, {"LDN_MESSAGE", "LDN_MESSAGE"}}
	dspaceActions = [][2]string{{"CREATE", "create"}, {"MODIFY", "modify"}, {"MODIFY_METADATA", "modify-metadata"},
		{"ADD", "add"}, {"REMOVE", "remove"}, {"DELETE", "delete"}, {"INSTALL", "install"}}
)

// dspaceMasks reads a filter as ConsumerProfile.readConfiguration does: a list of subject and
// event masks. It reports false where DSpace logs an error and goes on without the part.
func dspaceMasks(text string) (masks [][2]int, ok bool) {
	ok = true
	parse := func(names string, known [][2]string) (mask int) {
		for _, name := range javaSplit(names, "|") {
			bits := dspaceBits(name, known)
			mask |= bits
			ok = ok && bits != 0
		}
		return mask
	}
	for _, clause := range javaSplit(strings.TrimSpace(text), ":") {
		parts := javaSplit(clause, "+")
		if len(parts) != 2 {
			ok = false
			continue
		}
		masks = append(masks, [2]int{parse(parts[0], dspaceTypes), parse(parts[1], dspaceActions)})
	}
	return masks, ok
}

// dspaceBits is Event.parseObjectType and Event.parseEventType.
func dspaceBits(name string, known [][2]string) int {
	if name == "*" || strings.EqualFold(name, "all") {
		return 1<<len(known) - 1
	}
	for i, k := range known {
		if strings.EqualFold(k[0], name) {
			return 1 << i
		}
	}
	return 0
}

// dspacePasses is Event.pass, for the type and the action with these numbers.
func dspacePasses(masks [][2]int, kind, action int) bool {
	return slices.ContainsFunc(masks, func(m [2]int) bool { return 1<<kind&m[0] != 0 && 1<<action&m[1] != 0 })
}

// javaSplit is Java's String.split for a separator: without the empty parts at the end.
func javaSplit(s, separator string) []string {
	parts := strings.Split(s, separator)
	if s == "" {
		return parts
	}
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}

// fatal is what the helpers need of *testing.T and *rapid.T.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// sameAsDSpace compares the decisions on all types and all actions. It returns how many
// events the filter selects.
func sameAsDSpace(t fatal, text string) (selected int) {
	t.Helper()
	masks, _ := dspaceMasks(text)
	f, err := filter.Compile(text)
	if err != nil {
		t.Fatalf("DSpace accepts %q: %v", text, err)
	}
	again, err := filter.Compile(f.String())
	if err != nil {
		t.Fatalf("%q is written as %q: %v", text, f, err)
	}
	for i, kind := range dspaceTypes {
		for j, action := range dspaceActions {
			e := envelope.Event{Subject: envelope.Ref{Type: kind[1], ID: "1"}, Action: action[1]}
			want := dspacePasses(masks, i, j)
			if f.Match(e) != want || again.Match(e) != want {
				t.Fatalf("%q on %s of %s: DSpace says %t; the filter is %s", text, action[0], kind[0], want, f)
			}
			if want {
				selected++
			}
		}
	}
	return selected
}

// TestDSpaceFilters: the filters of DSpace's own configuration (source: its
// dspace/config/dspace.cfg; the last two show several clauses) decide on every type and action as
// in DSpace.
func TestDSpaceFilters(t *testing.T) {
	for text, selects := range map[string]int{
		"Item+Install|Modify|Modify_Metadata": 3,
		"All+All":                             63,
		"Community|Collection|Item|Bundle|Site|LDN_MESSAGE+Add|Create|Modify|Modify_Metadata|Delete|Remove": 36,
		"EPerson+Create":       1,
		"Item+Modify_Metadata": 1,
		"Community|Collection|Item|Bundle|Bitstream|Site+Add|Create|Modify|Modify_Metadata|Delete|Remove": 36,
		"Item+Delete":                 1,
		"Item+Install":                1,
		"Item+Modify|Modify_Metadata": 2,
		"Item+Modify:Item+Modify_Metadata:Item+Delete:Item+Remove:Bundle+ALL:Bitstream+All":                  18,
		"Item+Install|Modify|Modify_Metadata|Delete|Remove":                                                  5,
		"Collection+Modify_Metadata":                                                                         1,
		"Item|Collection+Create|Modify:Bundle+Add|Remove":                                                    6,
		"Community|Collection|Item|Bundle+Add|Create|Modify|Modify_Metadata|Delete|Remove:Bundle+Add|Remove": 24,
	} {
		if got := sameAsDSpace(t, text); got != selects {
			t.Errorf("%q selects %d kinds of events; expected %d", text, got, selects)
		}
	}
}

// TestDSpaceTable: every type with every action, as a filter of its own.
func TestDSpaceTable(t *testing.T) {
	for _, kind := range append(slices.Clone(dspaceTypes), [2]string{"*"}, [2]string{"all"}) {
		for _, action := range append(slices.Clone(dspaceActions), [2]string{"*"}, [2]string{"aLL"}) {
			sameAsDSpace(t, kind[0]+"+"+action[0])
			sameAsDSpace(t, strings.ToLower(kind[0])+"+"+strings.ToLower(action[0]))
		}
	}
}

// TestDSpaceGrammar: of random texts, the filter decides as DSpace does on those in which
// DSpace finds no error, and refuses the others. Refused too are texts that select nothing
// because names are missing, which DSpace does not report.
func TestDSpaceGrammar(t *testing.T) {
	names := []string{"Item", "bundle", "BITSTREAM", "LDN_MESSAGE", "*", "all", "Create", "modify_metadata", "REMOVE",
		"Itm"}
	valid, invalid := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		token := rapid.OneOf(rapid.SampledFrom(names), rapid.SampledFrom([]string{":", "+", "|"}))
		text := strings.Join(rapid.SliceOfN(token, 0, 12).Draw(t, "tokens"), "")
		if rapid.Bool().Draw(t, "well formed") {
			kind, action := rapid.SampledFrom(names[:6]), rapid.SampledFrom(names[4:9])
			text = kind.Draw(t, "type") + "+" + action.Draw(t, "action") + text
		}
		masks, ok := dspaceMasks(text)
		missing := func(m [2]int) bool { return m[0] == 0 || m[1] == 0 }
		nothing := len(masks) == 0 || slices.ContainsFunc(masks, missing)
		if ok && !nothing {
			valid++
			sameAsDSpace(t, text)
			return
		}
		invalid++
		if f, err := filter.Compile(text); err == nil {
			t.Fatalf("%q, in which DSpace finds an error, is read as %s", text, f)
		}
	})
	if valid == 0 || invalid == 0 {
		t.Errorf("%d valid and %d invalid texts: one side was not tested", valid, invalid)
	}
}
