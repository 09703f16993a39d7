// Command archivist-task is the entry point of images in which tasks run. It runs a task as the function task-runner
// does. Its arguments are what the image is made for: they are run if the task has neither command nor script.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"archivist/pkg/app/boot"
)

// main runs one task. Its exit code is for ECS: it does not say how the task has ended, which the result in the
// bucket does.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := run(ctx)
	if err != nil {
		log.Fatal(err)
	}
}

// run leaves a result in the bucket, or returns why it cannot. The environment names the job (boot.EnvTaskJob).
// SIGTERM, which ECS sends before it stops a container, ends the task.
func run(ctx context.Context) error {
	key := os.Getenv(boot.EnvTaskJob)
	err := os.MkdirAll(os.TempDir(), 0o777) // an image can be without
	if err != nil {
		return err
	}

	r, err := boot.TaskContainer(ctx, os.Getenv, os.Environ(), os.Args[1:])
	if err != nil {
		return err
	}

	result, err := r.Contain(ctx, key)
	if err != nil {
		return err
	}

	r.Log.Info("the task has run", "job", key, "end", result.End, "exit", result.Exit, "reason",
		result.Reason)
	return nil
}
