package definition

import _ "embed"

// Parts is the source of this file. Its comments describe the fields in the OpenAPI document.
//
//go:embed parts.go
var Parts []byte

// The types of this file are the parts of definitions that are the same in the API and where they are used. Their tags
// are those of the document.

// ComponentItems selects items: exactly one field is set.
type ComponentItems struct {
	// Only items with these ids, at most 500.
	IDs []string `json:"ids,omitempty" maxItems:"500" example:"[\"item:delivery-17\"]"`
	// Only items that this filter selects, whatever actions it names.
	Filter string `json:"filter,omitempty" maxLength:"4000" example:"ComponentItem+Create:Collection=maps"`
}

// ComponentTimeout ends work that takes too long.
type ComponentTimeout struct {
	// Of one item, in seconds: 1 to 840; of a task, to 86,400. By default 60.
	Item int `json:"itemSeconds,omitempty" minimum:"0" example:"60"`
	// Of a run, in seconds: at most 604,800. By default 3,600.
	Run int `json:"runSeconds,omitempty" minimum:"0" example:"3600"`
}

// ComponentTask is a container of Amazon ECS on Fargate.
type ComponentTask struct {
	// The ARN of the cluster.
	Cluster string `json:"cluster" maxLength:"400" example:"arn:aws:ecs:us-east-1:123456789012:cluster/robots"`
	// The ARN of the task definition. It must be one of the targets that the deployment allows.
	Definition string `json:"taskDefinition" maxLength:"400"`
	// The name of the container that does the work.
	Container string `json:"container" maxLength:"255" example:"ocr"`
	// The ids of the subnets.
	Subnets []string `json:"subnets" maxItems:"16" example:"[\"subnet-0a1b\"]"`
	// The ids of the security groups.
	Groups []string `json:"securityGroups,omitempty" maxItems:"5" example:"[\"sg-0a1b\"]"`
}

// ComponentRunnable is what does the work. Exactly one field is set.
type ComponentRunnable struct {
	// The name of a function that is part of the system.
	Function string `json:"function,omitempty" maxLength:"100" example:"fixity"`
	// The ARN of a Lambda function. It must be one of the targets that the deployment allows.
	Lambda string `json:"lambda,omitempty" maxLength:"300" example:"arn:aws:lambda:us-east-1:123456789012:function:f"`
	// A container of Amazon ECS.
	Task *ComponentTask `json:"task,omitempty"`
}

// ComponentRetry says how often an item that failed is tried again.
type ComponentRetry struct {
	// The number of tries after the first: 1 to 10.
	Max int `json:"max" minimum:"1" maximum:"10" example:"3"`
	// The wait before the first of them, in seconds. It doubles each time. By default 60.
	Backoff int `json:"backoffSeconds,omitempty" minimum:"0" maximum:"86400" example:"60"`
}

// ConsumerTarget is what handles the events of a consumer. Exactly one field is set.
type ConsumerTarget struct {
	// The name of a handler that is part of the system.
	Handler string `json:"handler,omitempty" maxLength:"100" example:"search"`
	// The ARN of a Lambda function. It must be one of the targets that the deployment allows.
	Lambda string `json:"lambda,omitempty" maxLength:"300" example:"arn:aws:lambda:us-east-1:123456789012:function:f"`
	// The URL of an SQS queue. It must be one of the targets that the deployment allows.
	Queue string `json:"queue,omitempty" maxLength:"300" example:"https://sqs.us-east-1.amazonaws.com/123456789012/q"`
}

// ConsumerCoalescing says how the events of one order key become one.
type ConsumerCoalescing struct {
	// A key waits until it had no event for so many seconds. 0: only the events of one step of a run are coalesced.
	Debounce int `json:"quietSeconds,omitempty" minimum:"0" example:"60"`
	// It waits at most so many seconds.
	MaxWait int `json:"mostSeconds,omitempty" minimum:"0" example:"600"`
	// Whether a create and a delete of one subject cancel out.
	Cancel bool `json:"cancel,omitempty"`
}
