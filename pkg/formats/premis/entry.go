package premis

import (
	"maps"
	"slices"
	"strings"
)

// use says in which version an element is part of another, and whether it is left out. left
// is added to a version: there it may be, and is not read.
type use int

const (
	in2 use = 1 << iota
	in3
	left
	both = in2 | in3
)

// parts are the elements inside each element of an event or agent (source: the XML schemas of
// PREMIS 2.2 and 3.0). What is not here has a text.
var parts = map[string]map[string]use{
	"event": {
		"eventIdentifier": both, "eventType": both, "eventDateTime": both, "eventDetail": in2,
		"eventDetailInformation": in3, "eventOutcomeInformation": both,
		"linkingAgentIdentifier":  both,
		"linkingObjectIdentifier": both,
	},
	"eventIdentifier":        {"eventIdentifierType": both, "eventIdentifierValue": both},
	"eventDetailInformation": {"eventDetail": in3, "eventDetailExtension": in3 | left},
	"eventOutcomeInformation": {
		"eventOutcome": both, "eventOutcomeDetail": both,
	},
	"eventOutcomeDetail": {
		"eventOutcomeDetailNote": both, "eventOutcomeDetailExtension": both | left,
		"mdSec": in2 | left,
	},
	"linkingAgentIdentifier": {
		"linkingAgentIdentifierType": both, "linkingAgentIdentifierValue": both,
		"linkingAgentRole": both,
	},
	"linkingObjectIdentifier": {
		"linkingObjectIdentifierType": both, "linkingObjectIdentifierValue": both,
		"linkingObjectRole": both | left,
	},
	"agent": {
		"agentIdentifier": both, "agentName": both, "agentType": both, "agentVersion": in3,
		"agentNote":      both,
		"agentExtension": both | left, "mdSec": in2 | left, "linkingEventIdentifier": both | left,
		"linkingRightsStatementIdentifier": both | left, "linkingEnvironmentIdentifier": in3 | left,
	},
	"agentIdentifier": {"agentIdentifierType": both, "agentIdentifierValue": both},
}

// event reads an event from its elements. What is wrong is kept by refuse, and reading goes
// on: the result is thrown away then.
func (r *reader) event(n node, id Identifier) *Event {
	e := &Event{
		ID:      id,
		Type:    r.term(n, "eventType", "eventType"),
		Written: r.required(n, "eventDateTime"),
	}

	var why string
	e.Time, why = moment(e.Written, r.zone)
	if why != "" {
		r.refuse("has the eventDateTime %q, which %s", e.Written, why)
	}

	// In version 2 the detail is an element of the event itself, in version 3 inside another.
	details := slices.Clone(n.kids)
	for _, information := range n.all("eventDetailInformation") {
		details = append(details, information.kids...)
	}

	e.Detail = texts(details, "eventDetail")
	e.Outcome, e.Note = r.outcome(n.all("eventOutcomeInformation"))

	for _, link := range n.all("linkingAgentIdentifier") {
		agent := r.pair(link, "linkingAgentIdentifier")
		roles := link.all("linkingAgentRole")

		// An agent with several roles is several links.
		if len(roles) == 0 {
			e.Agents = append(e.Agents, Link{Agent: agent})
		}
		for _, role := range roles {
			e.Agents = append(e.Agents,
				Link{Agent: agent, Role: known(role, "eventRelatedAgentRole")})
		}
	}

	for _, link := range n.all("linkingObjectIdentifier") {
		e.Objects = append(e.Objects, r.pair(link, "linkingObjectIdentifier"))
	}
	return e
}

// agent reads an agent from its elements.
func (r *reader) agent(n node, id Identifier) *Agent {
	a := &Agent{ID: id, Name: texts(n.kids, "agentName"), Note: texts(n.kids, "agentNote")}
	for i, further := range n.all("agentIdentifier") {
		if i > 0 {
			a.Also = append(a.Also, r.pair(further, "agentIdentifier"))
		}
	}

	if len(n.all("agentType")) > 0 {
		a.Type = r.term(n, "agentType", "agentType")
	}

	if len(n.all("agentVersion")) > 0 {
		a.Version = r.required(n, "agentVersion")
	}
	return a
}

// identifier reads the identifier of an event, or the first of an agent.
func (r *reader) identifier(n node, kind string) Identifier {
	all := n.all(kind + "Identifier")
	if len(all) == 0 {
		r.refuse("has no %sIdentifier", kind)
		return Identifier{}
	}
	if kind == "event" && len(all) > 1 {
		r.refuse("has %d eventIdentifiers", len(all))
	}
	return r.pair(all[0], kind+"Identifier")
}

// pair reads the type and the value of an identifier. Both must be there.
func (r *reader) pair(n node, element string) Identifier {
	return Identifier{Type: r.required(n, element+"Type"), Value: r.required(n, element+"Value")}
}

// required is the text of an element that must be there once, and have one.
func (r *reader) required(n node, name string) string {
	return r.one(n, name).text
}

// one is the only element of a name, with text; the zero node if that is not so.
func (r *reader) one(n node, name string) node {
	switch all := n.all(name); {
	case len(all) == 0:
		r.refuse("has no %s", name)
	case len(all) > 1:
		r.refuse("has %d elements %s", len(all), name)
	case all[0].text == "":
		r.refuse("has a %s without text", name)
	default:
		return all[0]
	}
	return node{}
}

// term is the text of a required element, as the vocabulary has it.
func (r *reader) term(n node, name, vocabulary string) string {
	return known(r.one(n, name), vocabulary)
}

// known is the term of a vocabulary that an element names by URI, else its text. A URI of a
// term that is not known leaves the text, which is all that there is.
func known(n node, vocabulary string) string {
	for _, uri := range []string{n.uri, n.text} {
		if term, is := byURI(uri, vocabulary); is && term != "" {
			return term
		}
	}
	return n.text
}

// byURI finds a term by its URI, and tells whether it is a URI of the vocabulary: "" is the
// term of one that this package does not know. The vocabularies are published under both
// schemes.
func byURI(uri, vocabulary string) (term string, is bool) {
	uri = strings.Replace(uri, "https://", "http://", 1)
	code, is := strings.CutPrefix(uri, vocabularies+vocabulary+"/")
	if !is {
		return "", false
	}

	for _, term := range slices.Sorted(maps.Keys(codes[vocabulary])) {
		if codes[vocabulary][term] == code {
			return term, true
		}
	}
	return "", true
}

// outcomes are what archives write as outcome, in lower case.
var outcomes = map[string]string{
	"success": Success, "successful": Success, "succeeded": Success, "pass": Success,
	"passed":  Success,
	"warning": Warning,
	"fail":    Failure, "failed": Failure, "failure": Failure,
}

// outcome reads the outcome of an event, "" if it states none, and its notes, one in a line.
func (r *reader) outcome(all []node) (outcome, note string) {
	var notes []node
	for _, information := range all {
		for _, said := range information.all("eventOutcome") {
			means := r.means(said)
			if outcome != "" && means != outcome {
				r.refuse("has different outcomes: %s and %s", outcome, means)
			}
			outcome = means
		}
		for _, detail := range information.all("eventOutcomeDetail") {
			notes = append(notes, detail.kids...)
		}
	}
	return outcome, texts(notes, "eventOutcomeDetailNote")
}

// means is the outcome that an element states. Its URI and its text must not differ. An
// outcome that is not known would be a guess, so it is refused.
func (r *reader) means(n node) string {
	meaning := outcomes[strings.ToLower(n.text)]
	for _, uri := range []string{n.uri, n.text} {
		term, is := byURI(uri, "eventOutcome")
		if !is {
			continue
		}
		if term == "" || meaning != "" && meaning != term {
			r.refuse("has the eventOutcome %q with the URI %s", n.text, uri)
		}
		meaning = term
	}

	if meaning == "" {
		r.refuse("has the eventOutcome %q; known are %s", n.text,
			strings.Join(slices.Sorted(maps.Keys(outcomes)), ", "))
	}
	return meaning
}

// all are the elements of a name inside an element. They are in the order of the document.
func (n node) all(name string) (found []node) {
	for _, kid := range n.kids {
		if kid.name == name {
			found = append(found, kid)
		}
	}
	return found
}

// texts are the texts of all elements of a name, one in a line.
func texts(nodes []node, name string) string {
	var found []string
	for _, n := range nodes {
		if n.name == name && n.text != "" {
			found = append(found, n.text)
		}
	}
	return strings.Join(found, "\n")
}

// node is an element of an event or agent: its text, or the elements inside it.
type node struct {
	name string
	uri  string // of the term that the text is, "" = not stated
	text string
	kids []node
}
