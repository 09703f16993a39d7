package events

import (
	"archivist/cmd/archivist/command"
)

// Texts are the help of flags of this package that is too long for their tags.
var Texts = command.Texts{
	"help_into":        "Build beside what is in use: calls of the target have this name as the consumer.",
	"help_raise_epoch": "Say that the table was restored from a backup. Consumers stop until each is reset.",
}
