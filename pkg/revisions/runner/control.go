package runner

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"archivist/pkg/kernel/fault"
)

// Machine is the name of the state machine of one execution of an attempt. Its input is an
// Execution.
const Machine = "task-run"

// Execution says which attempt an execution of the machine is for.
type Execution struct {
	Attempt string `json:"attempt"` // "archive/12/name/1"
	Exec    string `json:"exec"`    // which execution drives the attempt
}

// Actions of a Control.
const (
	ActionBegin = "begin"
	ActionEnd   = "end"
)

// Control is what the machine asks of the function task-control: to begin an attempt, which is
// answered by a Begun, or to end it, with the Result or with the Failure by which there is none. In
// that case Look says whether there is one all the same, and until when the attempt can still go
// on. Attempt and Exec are those of its Execution.
type Control struct {
	Action  string   `json:"action"`
	Attempt string   `json:"attempt"`
	Exec    string   `json:"exec"`
	Result  *Result  `json:"result,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}

// Failure is an error as Step Functions reports it, or the end of a container. Cause is text or
// JSON, by the service.
type Failure struct {
	Error string `json:"Error"` // its name, e.g. "States.Timeout"; ContainerEnded
	Cause string `json:"Cause"`
}

// ContainerEnded is the Error where a container has ended with exit code 0: then it has left a
// Result.
const ContainerEnded = "Container.Ended"

// What follows when an attempt has begun.
const (
	NextRun       = "Run"       // the Job, in the function task-runner
	NextContainer = "Container" // the Job, in the Container
	NextEnd       = "End"       // with the Result: it cannot be run
	NextStop      = "Stop"      // nothing: the attempt is no longer that of the execution
)

// Begun is the answer to ActionBegin. It has what Next needs, and nothing else: an answer of a
// state has at most 256 KiB.
type Begun struct {
	Next      string     `json:"next"`
	Job       *Job       `json:"job,omitempty"`
	Result    *Result    `json:"result,omitempty"`
	Container *Container `json:"container,omitempty"`
}

// Container is how a task with an image is run: in Fargate, by a task definition that has the
// image. The container gets the key of its Job, which is too large for its environment, in
// ARCHIVIST_JOB. It leaves the Result in the bucket; how it ends says nothing else.
type Container struct {
	Cluster        string   `json:"cluster"`
	TaskDefinition string   `json:"taskDefinition"`
	Subnets        []string `json:"subnets"`
	SecurityGroups []string `json:"securityGroups"`
	PublicIP       string   `json:"publicIp"` // "ENABLED" or "DISABLED"
	Job            string   `json:"job"`
	Seconds        int      `json:"seconds"` // after which it is stopped
}

// Containers are the containers of a deployment, as the template passes them on in JSON. The zero
// value has none.
type Containers struct {
	Cluster        string   `json:"cluster"` // its ARN
	Subnets        []string `json:"subnets"`
	SecurityGroups []string `json:"securityGroups"`
	PublicIP       string   `json:"publicIp"`

	// ARNs of task definitions, by the image as tasks name it.
	Images map[string]string `json:"images"`
}

// ContainerName is the name of the container in each task definition.
const ContainerName = "task"

// Of is the container of an image. Without one, the error (an Invalid) says what can be done. Job
// and Seconds are set by the caller.
func (c Containers) Of(image string) (Container, error) {
	definition, is := c.Images[image]
	if !is {
		there := strings.Join(slices.Sorted(maps.Keys(c.Images)), ", ")
		return Container{}, fault.New(fault.Invalid,
			"the image %s is not one of this deployment, which has %s: name "+
				"it in the setting taskImages, and deploy again", image, cmp.Or(there, "none"))
	}
	return Container{
		Cluster:        c.Cluster,
		TaskDefinition: definition,
		Subnets:        c.Subnets,
		SecurityGroups: c.SecurityGroups,
		PublicIP:       c.PublicIP,
	}, nil
}

// Stopped is the task of ECS that has ended, as the Cause of a Failure describes it (source: the
// answer of ecs:runTask.sync, which is that of DescribeTasks with names in upper case).
type Stopped struct {
	TaskArn       string
	LastStatus    string
	StoppedReason string
	Containers    []struct {
		Name     string
		ExitCode *int
		Reason   string
	}
}

// Stopped is the container whose end is the failure; nil if the failure is another, such as one of
// the service or a time-out.
func (f *Failure) Stopped() *Stopped {
	var s Stopped
	err := json.Unmarshal([]byte(f.Cause), &s)
	if err != nil || s.TaskArn == "" || s.LastStatus != "STOPPED" {
		return nil
	}
	return &s
}

// Why says how a container ended that has left no Result, as far as ECS says it, and where its log
// is.
func (s *Stopped) Why() string {
	stream := fmt.Sprintf("its log stream is %s/%s/%s", ContainerName, ContainerName,
		path.Base(s.TaskArn))
	for _, c := range s.Containers { // AWS can add others, e.g. that of GuardDuty
		switch {
		case c.Name != ContainerName:
		case c.ExitCode == nil:
			return "the container did not start: " + cmp.Or(c.Reason, s.StoppedReason)
		case *c.ExitCode == 0:
			return "the container ended without a result: the entry point of its image has to be archivist-task; " +
				stream
		default:
			return fmt.Sprintf("the container ended with exit code %d and no result: %s; %s",
				*c.ExitCode,
				cmp.Or(c.Reason, s.StoppedReason), stream)
		}
	}
	return "the container did not start: " + s.StoppedReason
}
