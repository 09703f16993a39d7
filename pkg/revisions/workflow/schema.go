package workflow

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"time"
)

// Schema is the JSON Schema (draft 2020-12) of a file of tasks, for editors. What Parse accepts, it
// accepts. It describes each value by itself: Parse also refuses what does not go together, or has
// no meaning.
//
//go:embed schema.json
var Schema []byte

// part is a part of a JSON Schema.
type part = map[string]any

// makeSchema makes the content of schema.json from the limits and forms of Parse, so that they
// cannot differ: a test compares the file with it.
func makeSchema() []byte {
	name := form(TaskName.String(), "")
	schedule := object(part{
		"cron": part{"type": "string", "minLength": 1, "maxLength": maxText,
			"description": "five fields: minute, hour, day of the month, month, day of the week"},
		"zone": part{"type": "string", "minLength": 1, "maxLength": maxText, "default": "UTC",
			"description": "of the IANA database, e.g. Europe/Berlin"},
		"overlap": part{"enum": []Overlap{Skip, Queue, Replace}, "default": Skip},
	}, "cron")
	schedules := oneOrMore(schedule, maxSchedules)
	dependency := part{"anyOf": []part{form(edgeForm(), "a task of this revision, PREV, or PREV:name"), object(part{
		"task":  form(edgeForm(), ""),
		"on":    part{"enum": []On{Succeeded, Ended, Failed}, "description": "standard: succeeded; of PREV ended"},
		"scope": part{"enum": []string{scopeNearest, scopeExact}, "default": scopeNearest}}, "task")}}
	pattern := form(`^!?[^/\\{}][^\\{}]*$`, "")
	pattern["maxLength"] = maxText
	patterns := oneOrMore(pattern, MaxPaths)
	variables := func(values part) part {
		return part{"type": "object", "maxProperties": MaxEnv, "additionalProperties": values,
			"propertyNames": variableName()}
	}
	cancels := form(TaskName.String(), "")
	cancels["not"] = part{"const": Commit}
	command := part{"type": "string", "minLength": 1, "maxLength": MaxScript}
	task := object(part{
		"name":    about(name, "the name of the task; COMMIT is the commit itself, which has only depends"),
		"depends": about(oneOrMore(dependency, MaxDepends), "what has to end before the task starts"),
		"cancels": about(oneOrMore(cancels, MaxCancels),
			"tasks whose unfinished instances of earlier revisions are superseded; PREV: this task"),
		"follow":  truthful(false, "waits for the superseder of what it depends on"),
		"image":   about(form(imageName.String(), ""), "a container image; standard: the runner of the system"),
		"command": about(command, "what is run; this or script"),
		"script":  about(command, "what is run by the shell; this or command"),
		"shell":   part{"type": "string", "pattern": shellName.String(), "default": DefaultShell},
		"env": about(variables(part{"type": []string{"string", "number", "boolean"}, "maxLength": MaxEnvValue}),
			"variables of the environment"),
		"secrets": about(variables(form(secretName.String(), "")), "names in Secrets Manager, by variable"),
		"outputs": about(patterns, "files that are kept"),
		"timeout": about(duration(MaxTimeout), fmt.Sprintf("standard: %s; more than %s needs an image",
			brief(DefaultTimeout), brief(LambdaTimeout))),
		"retries":       retriesSchema(),
		"triggers":      triggersSchema(schedules),
		"lock":          about(name, "tasks with the same lock run one at a time, in order"),
		"paths":         about(patterns, "the task is for revisions that change one of these"),
		"interruptible": truthful(true, "false: a superseder waits while the task runs"),
		"allowFailure":  truthful(false, "if it fails, what waits for its success goes on"),
		"manual": part{"anyOf": []part{{"type": "boolean"}, {"type": "string", "minLength": 1, "maxLength": maxText}},
			"description": "a person starts it, when all that it waits for has ended: true, or who that is"},
		"inputs": about(oneOrMore(form(edgeForm(), ""), MaxDepends),
			"dependencies whose outputs it finds in ARCHIVIST_INPUTS"),
		"parameters": parametersSchema(),
		"was":        about(name, "the name of the task in earlier revisions"),
	}, "name")
	task["not"] = part{"required": []string{"command", "script"}}
	task["dependentRequired"] = part{"shell": []string{"script"}}
	task["if"] = part{"properties": part{"name": part{"const": Commit}}, "required": []string{"name"}}
	task["then"] = part{"propertyNames": part{"enum": []string{"name", "depends"}}}
	task["properties"].(part)["name"].(part)["not"] = part{"const": Prev}
	whole := part{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Tasks of an archive",
		"type": "array", "items": task, "maxItems": MaxTasks + 1}
	out, err := json.MarshalIndent(whole, "", "  ")
	if err != nil {
		panic(err) // it consists of maps, texts and numbers
	}
	return append(out, '\n')
}

// edgeForm is the form of what a task depends on.
func edgeForm() string {
	return "^(" + Prev + ":)?" + TaskName.String()[1:]
}

// parametersSchema is the form of parameters, by the names of their variables.
func parametersSchema() part {
	value := part{"type": []string{"string", "number", "boolean"}, "maxLength": MaxParameter}
	return part{"type": "object", "maxProperties": MaxParameters, "propertyNames": variableName(),
		"description": "values that people set when they start it by hand; the task finds them as variables",
		"additionalProperties": object(part{
			"type":        part{"enum": []Type{String, Integer, Number, Boolean}, "default": String},
			"default":     about(value, "the value if none is set; without it, one has to be set"),
			"options":     about(oneOrMore(value, maxOptions), "the values that there are"),
			"description": part{"type": "string", "minLength": 1, "maxLength": maxText},
		})}
}

// variableName is the form of the name of a variable that a file can set.
func variableName() part {
	return part{"pattern": envName.String(), "not": part{"pattern": "^" + reservedEnv}}
}

// retriesSchema is the form of retries: a number of attempts, or a mapping.
func retriesSchema() part {
	attempts := part{"type": "integer", "minimum": 1, "maximum": MaxAttempts, "default": 1,
		"description": "attempts in all"}
	backoff := about(duration(maxBackoff), "before the second attempt; it doubles; standard: "+brief(DefaultBackoff))
	return part{"anyOf": []part{attempts, object(part{"attempts": attempts, "backoff": backoff})}}
}

// triggersSchema is the form of triggers: a word, a mapping, or a list of both.
func triggersSchema(schedules part) part {
	words := part{"enum": []string{onCommit, onDemand}}
	mapped := object(part{onCommit: part{"type": "boolean"}, onDemand: part{"type": "boolean"}, onSchedule: schedules})
	return part{"description": "what starts the task; standard: commit and manual", "anyOf": []part{words, mapped,
		{"type": "array", "minItems": 1, "maxItems": maxSchedules + 2, "items": part{"anyOf": []part{words, mapped}}}}}
}

// duration is a text such as 1h30m, or a number of seconds.
func duration(most time.Duration) part {
	const number, unit = `([0-9]+(\.[0-9]*)?|\.[0-9]+)`, `(ns|us|µs|μs|ms|s|m|h)`
	return part{"anyOf": []part{{"type": "integer", "minimum": 1, "maximum": int(most / time.Second)},
		{"type": "string", "pattern": `^\+?(` + number + unit + `)+$`}}}
}

func form(pattern, description string) part {
	p := part{"type": "string", "pattern": pattern}
	if description != "" {
		p["description"] = description
	}
	return p
}

// about is the part with a description.
func about(p part, description string) part {
	out := part{"description": description}
	for k, v := range p {
		out[k] = v
	}
	return out
}

func truthful(standard bool, description string) part {
	return part{"type": "boolean", "default": standard, "description": description}
}

// oneOrMore is one value or a list of them.
func oneOrMore(of part, most int) part {
	return part{"anyOf": []part{of, {"type": "array", "items": of, "minItems": 1, "maxItems": most}}}
}

func object(properties part, required ...string) part {
	p := part{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		p["required"] = required
	}
	return p
}
