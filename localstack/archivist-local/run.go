package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"archivist/localstack"
	v1 "archivist/pkg/api/v1"
)

// run brings everything up, submits the sample, and shows it when it is preserved.
func run(ctx context.Context, s *localstack.Stack) error {
	started := time.Now()
	if err := localstack.CheckTools(ctx); err != nil {
		return err
	}
	if err := portsAreFree(s); err != nil {
		return err
	}
	o, err := s.Up(ctx, runtime.GOARCH)
	if err != nil {
		return err
	}
	o.SampleURL = sourcesURL(s)
	if err := publish(s, o); err != nil {
		return err
	}
	if err := startSources(ctx, s); err != nil {
		return err
	}
	ids, err := submit(ctx, s, o)
	if err != nil {
		return err
	}
	if err := archivist(ctx, s, append([]string{"batch", "watch"}, ids...)...); err != nil {
		return err
	}
	fmt.Printf("\nPreserved in the collection %q:\n", o.SampleCollection)
	if err := archivist(ctx, s, "object", "list", "-c", o.SampleCollection); err != nil {
		return err
	}
	fmt.Printf(`
Archivist is up, after %d seconds. Next:
  make serve FOLDER=path            submit files of your own
  dist/archivist --help             the command line
  %s/docs
                                    the API
  make stop                         stop it and delete its data
`, int(time.Since(started).Seconds()), o.APIURL)
	return nil
}

// archivist runs the command line on the stack.
func archivist(ctx context.Context, s *localstack.Stack, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(s.Root, "dist", "archivist"), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Root, os.Stdout, os.Stderr
	return cmd.Run()
}

// portsAreFree fails if another program listens where the stack will.
func portsAreFree(s *localstack.Stack) error {
	if _, err := os.Stat(s.State("ministack.pid")); err == nil && s.Healthy() {
		return nil // it is up already
	}
	for _, port := range []int{s.Port, sourcesPort(s)} {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return fmt.Errorf("port %d is in use by another program; "+
				"stop that program, or choose another port: make run PORT=%d", port, s.Port+100)
		}
		l.Close()
	}
	return nil
}

// publish writes the outputs where the command line and people look for them.
func publish(s *localstack.Stack, o localstack.Outputs) error {
	if err := s.Save(o); err != nil {
		return err
	}
	data, err := os.ReadFile(s.State("outputs.json"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Root, ".local", "outputs.json"), data, 0o644)
}

// submit submits each object of the sample. When make run is repeated, another note
// beside the files makes the next version.
func submit(ctx context.Context, s *localstack.Stack, o localstack.Outputs) (batches []string, err error) {
	objects, err := localstack.SampleObjects()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(s.Log, "submitting %d sample objects\n", len(objects))
	client := &v1.Client{URL: o.APIURL, HTTP: http.DefaultClient}
	for _, obj := range objects {
		known, err := client.Objects(ctx, v1.Filter{Collection: o.SampleCollection, LocalID: obj.LocalID})
		if err != nil {
			return nil, err
		}
		round := 1
		if len(known) > 0 {
			round = known[0].Version + 1
		}
		b, err := client.Submit(ctx, v1.BatchRequest{
			Collection: o.SampleCollection,
			Submitter:  "make run",
			Payload: v1.Payload{Type: "object-manifest",
				URL: fmt.Sprintf("%s/manifests/%s.checkm?round=%d", o.SampleURL, obj.LocalID, round)},
			Identifiers: &v1.Identifiers{Local: []string{obj.LocalID}},
			Metadata:    &v1.Metadata{Who: obj.Who, What: obj.What, When: obj.When},
		}, fmt.Sprintf("sample-%s-%d", obj.LocalID, round))
		if err != nil {
			return nil, err
		}
		batches = append(batches, b.ID)
	}
	return batches, nil
}
