package runner

import "time"

// Limits of a run, each with its reason.
const (
	// Bytes of the files of a revision: scratch space of a function is 10 GiB, and the task needs
	// some of it.
	MaxCheckout = 4 << 30

	// Files: a Result names them all.
	MaxOutputs = 1000

	// Bytes of all outputs: they are kept within Saving.
	MaxOutputSize = 1 << 30

	// Bytes of all inputs: they are beside the checkout in the scratch space.
	MaxInputSize = 2 << 30

	// Bytes of the output: people read it, and it is in memory if the bucket is slow.
	MaxLog = 10 << 20

	// Bytes of a Job or a Result as JSON: Step Functions passes on at most 256 KiB.
	MaxPayload = 220 << 10

	// Between SIGTERM and SIGKILL.
	Grace = 10 * time.Second

	// For the outputs of a run, once its processes have ended.
	Saving = 90 * time.Second

	// Bytes of output in a part of the log: about what people read at once, and few requests for
	// much output.
	partSize = 64 << 10

	// Bytes of a key in S3.
	maxKey = 1024

	// At the end of a function's time: for outputs and the result. The processes are told to end
	// this, and Grace, before.
	reserve = 30 * time.Second

	// How long output waits until it is stored: people see it a second later.
	betweenParts = time.Second

	// Between two looks at CancelKey: each is a request.
	betweenLooks = 2 * time.Second

	// Between two tries to store the Result.
	betweenTries = time.Second

	// For what is left in the pipes of processes that have ended.
	lastWords = 2 * time.Second
)

// Margin is how long after its Deadline a run has ended at the latest, with its outputs. Who sets a
// deadline counts with it.
const Margin = Grace + lastWords + Saving

// What the attempt of a container takes longer than that of a function.
const (
	// Until its program begins: ECS finds a place for it and pulls the image.
	Pulling = 10 * time.Minute

	// From its end until that is known.
	Stopping = 3 * time.Minute
)
