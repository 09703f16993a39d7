package component

import (
	"encoding/json"

	"archivist/pkg/kernel/definition"
)

// node is a part of a JSON Schema.
type node = map[string]any

// Schema is the JSON Schema (draft 2020-12) of the file of a definition. It describes each field by
// itself: what it accepts, Check refuses only because fields do not go together, or because of what
// a text means (a filter, a schedule, a time zone). What Check accepts, it accepts. Tests compare
// the two.
func Schema() []byte {
	own := textNode(eventNames.String(),
		"the name of an event of a component, or one that people record")
	any := node{"type": "string", "minLength": 1, "maxLength": 100,
		"description": "likewise, or a type of the system's own events, e.g. object.create"}
	arn := textNode(arns.String(), "an ARN of Amazon ECS")
	aws := textNode(awsNames.String(), "a name of AWS")
	whole := objectNode(node{
		"name":        textNode(definition.Names.String(), "the name of the component"),
		"version":     node{"type": "integer", "description": "is set by the system"},
		"description": node{"type": "string", "maxLength": definition.MaxDescription},
		"event":       own,
		"pastSuccess": listNode(any, MaxNames,
			"the newest event of each of these names is a success"),
		"pastFailure": listNode(any, MaxNames,
			"the newest event of each of these names is a failure"),
		"future": listNode(any, MaxNames, "the item has no event of these names"),
		"old": listNode(own, MaxNames,
			"likewise, or its content was changed since by another"),
		"everyDays": numberNode(0, MaxEveryDays, 0, "its event in old is old after so many days"),
		"types": node{"type": []string{"array", "null"}, "maxItems": MaxNames,
			"items": textNode(itemTypes.String(), "a type of items")},
		"items": nullable(objectNode(node{
			"ids": node{"type": []string{"array", "null"}, "items": node{"type": "string"},
				"maxItems": MaxIDs},
			"filter": node{"type": "string",
				"description": "a filter of events; its terms are id and parent"}})),
		"maxItems":    numberNode(1, MaxMaxItems, defaultMaxItems, "items of a run"),
		"concurrency": numberNode(1, MaxConcurrency, defaultConcurrency, "items at once"),
		"instances":   numberNode(1, MaxInstances, 1, "runs at once"),
		"timeout": nullable(objectNode(node{
			"itemSeconds": numberNode(1, MaxTaskSeconds, defaultItemSeconds,
				"of the work on an item"),
			"runSeconds": numberNode(1, MaxRunSeconds, defaultRunSeconds, "of a run")})),
		"schedule": node{"type": "string",
			"description": "rate(5 minutes), or five fields of a cron expression"},
		"timeZone": node{"type": "string",
			"description": "of the cron expression, e.g. Europe/Berlin"},
		"wake": node{"type": "boolean", "description": "it runs as soon as an item is ready"},
		"runnable": objectNode(node{
			"function": node{"type": "string", "description": "one that is part of the system"},
			"lambda":   node{"type": "string", "description": "an ARN"},
			"task": nullable(objectNode(node{"cluster": arn, "taskDefinition": arn,
				"container": aws,
				"subnets": node{"type": "array", "items": aws, "minItems": 1,
					"maxItems": MaxSubnets},
				"securityGroups": node{"type": []string{"array", "null"}, "items": aws,
					"maxItems": MaxGroups}},
				"cluster", "taskDefinition", "container", "subnets"))}),
		"retry": nullable(objectNode(node{
			"max": numberNode(1, MaxRetries, 0,
				"how often an item that failed is tried again"),
			"backoffSeconds": numberNode(1, MaxBackoff, defaultBackoff,
				"before the first time; it doubles")}, "max")),
		"maxResults": numberNode(1, MaxMaxResults, defaultMaxResults,
			"findings of a report that are kept"),
		"maxDepth": numberNode(1, MaxMaxDepth, defaultMaxDepth,
			"of a chain of components that cause each other"),
		"paused": node{"type": "boolean", "description": "from the start"},
	}, "name", "event", "runnable")

	whole["$schema"], whole["title"] = "https://json-schema.org/draft/2020-12/schema",
		"A component of Archivist"
	out, err := json.MarshalIndent(whole, "", "  ")
	if err != nil {
		panic(err) // it consists of maps, texts and numbers
	}
	return append(out, '\n')
}

// textNode is a text of a pattern.
func textNode(pattern, description string) node {
	return node{"type": "string", "pattern": pattern, "description": description}
}

// numberNode is a field whose standard value is also that of 0. standard 0: there is none.
func numberNode(least, most, standard int, description string) node {
	n := node{"type": "integer", "minimum": least, "maximum": most, "description": description}
	if standard > 0 {
		n["default"], n["minimum"] = standard, 0
	}
	return n
}

// listNode is a list without repetitions; null is an empty one, as Go writes it.
func listNode(of node, most int, description string) node {
	return node{"type": []string{"array", "null"}, "items": of, "maxItems": most,
		"uniqueItems": true,
		"description": description}
}

// objectNode is an object that has no other properties: a name that is written wrongly is found.
func objectNode(properties node, required ...string) node {
	n := node{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		n["required"] = required
	}
	return n
}

// nullable lets an object be null, which is the same as leaving it out. It changes n.
func nullable(n node) node {
	n["type"] = []string{"object", "null"}
	return n
}
