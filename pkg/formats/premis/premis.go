// Package premis writes preservation metadata as PREMIS 3 in XML, and reads events and agents
// of PREMIS 2 and 3.
//
// A document has the objects that are preserved, the events that happened to them, and
// the agents of these events, in this order, as the XML schema demands. A [Writer] writes
// them as a stream, since a version can have very many files, and [Read] reads as a stream.
//
// Types of events, outcomes, roles and kinds of agents are terms of the vocabularies at
// http://id.loc.gov/vocabulary/preservation, and written with their URIs. The semantic
// units are those of the PREMIS Data Dictionary 3.0 (Library of Congress).
//
// Writing does not validate: what a caller leaves out, or puts in twice, is missing or twice
// in the document.
package premis

import (
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"
)

// Identifier names something: its type ("ARK") and its value.
type Identifier struct{ Type, Value string }

// Category is what an object is.
type Category string

// Categories. An Entity is a unit of content that is described as one, e.g. a book; a
// Representation is the set of files that makes it whole; a File is one of these.
const (
	Entity         Category = "intellectualEntity"
	Representation Category = "representation"
	File           Category = "file"
)

// Object is what is preserved. Its first identifier is the archive's; the others are used
// elsewhere. IDs has at least one.
type Object struct {
	Category  Category
	IDs       []Identifier
	Relations []Relation

	// These are of a File only.
	Fixity       []Fixity
	Size         int64  // bytes
	Format       string // media type; "" = not known
	FormatNote   string
	OriginalName string
}

// Relation is a structural relationship of an object to others. Kind is a term of the
// relationshipSubType vocabulary: Represents or Includes. To is read as it is written, so
// that it need not fit into memory; its error ends the document.
type Relation struct {
	Kind string
	To   iter.Seq2[Identifier, error]
}

// Kinds of relations.
const (
	Represents = "represents"
	Includes   = "includes"
)

// To is a relation's other side when it is one object.
func To(id Identifier) iter.Seq2[Identifier, error] {
	return func(yield func(Identifier, error) bool) { yield(id, nil) }
}

// Fixity is a digest of a file: the algorithm's canonical name ("sha512"), the digest
// in hexadecimal, and who calculated it first.
type Fixity struct{ Algorithm, Digest, Originator string }

// Event is something that happened to objects. Type should be a term of the eventType
// vocabulary; another is written without a URI. Outcome is Success, Warning or Failure, or ""
// where none is stated.
type Event struct {
	ID   Identifier
	Type string
	// Written is empty for an event that is made here.
	Time    time.Time // in whole milliseconds
	Written string    // the time as the document has it that the event was read from
	Detail  string
	Outcome string
	Note    string
	Agents  []Link
	Objects []Identifier
}

// Outcomes, of the eventOutcome vocabulary.
const (
	Success = "success"
	Warning = "warning"
	Failure = "fail"
)

// Link is an agent with its role in an event, "" where none is stated.
type Link struct {
	Agent Identifier
	Role  string
}

// Roles, of the eventRelatedAgentRole vocabulary. An Authorizer gave permission for
// the event, an Implementer carried it out, by an ExecutingProgram.
const (
	Authorizer       = "authorizer"
	Implementer      = "implementer"
	ExecutingProgram = "executing program"
)

// Agent is who took part in events. Type is a term of the agentType vocabulary, Organization,
// Person or Software; "" where it is not known.
type Agent struct {
	ID      Identifier
	Also    []Identifier // further identifiers
	Name    string
	Type    string
	Version string
	Note    string
}

// Types of agents.
const (
	Organization = "organization"
	Person       = "person"
	Software     = "software"
)

// Carries returns why an XML document cannot contain a text, or "" if it can (XML 1.0,
// section 2.2, "Char"). A replacement character shows that one was lost before. The reason is
// a part of a sentence: "is not UTF-8".
func Carries(text string) string {
	for i, c := range text {
		switch {
		case c == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			return "is not UTF-8"
		case c == utf8.RuneError:
			return "has the replacement character U+FFFD: a character was lost before"
		case c < 0x20 && c != '\t' && c != '\n' && c != '\r', c == 0xfffe, c == 0xffff:
			return fmt.Sprintf("has the character %U, which XML cannot hold", c)
		}
	}
	return ""
}
