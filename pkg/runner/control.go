package runner

// Machine is the name of the state machine of one execution of an attempt. Its input is an Execution.
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

// Control is what the machine asks of the function task-control: to begin an attempt, which is answered by a
// Begun, or to end it, with the Result or with the Failure by which there is none. In that case Look says whether
// there is one all the same, and until when the attempt can still go on.
type Control struct {
	Action  string   `json:"action"`
	Attempt string   `json:"attempt"`
	Exec    string   `json:"exec"`
	Result  *Result  `json:"result,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}

// Failure is an error as Step Functions reports it.
type Failure struct {
	Error string `json:"Error"` // its name, e.g. "States.Timeout"
	Cause string `json:"Cause"`
}

// What follows when an attempt has begun.
const (
	NextRun       = "Run"       // the Job, in the function task-runner
	NextContainer = "Container" // the Job, in the Container
	NextEnd       = "End"       // with the Result: it cannot be run
	NextStop      = "Stop"      // nothing: the attempt is no longer that of the execution
)

// Begun is the answer to ActionBegin. It has what Next needs.
type Begun struct {
	Next      string     `json:"next"`
	Job       *Job       `json:"job,omitempty"`
	Result    *Result    `json:"result,omitempty"`
	Container *Container `json:"container,omitempty"`
}

// NoCluster is why a task with an image is Broken: no deployment has a cluster to run it in yet.
const NoCluster = "it needs a container, and this release of Archivist runs none: remove its image, or split it into " +
	"tasks of at most 14 minutes"

// Container is how a task with an image is run: in Fargate, by a task definition that has the image. The container
// gets the key of its Job, which is too large for its environment, in ARCHIVIST_JOB as "s3://bucket/key", and answers
// with SendTaskSuccess and a Result, or with SendTaskFailure, for the token in ARCHIVIST_TOKEN.
type Container struct {
	Cluster        string   `json:"cluster"`
	TaskDefinition string   `json:"taskDefinition"`
	Name           string   `json:"name"` // of the container in the task definition
	Subnets        []string `json:"subnets"`
	SecurityGroups []string `json:"securityGroups"`
	Job            string   `json:"job"`
	Seconds        int      `json:"seconds"` // after which it has failed
}
