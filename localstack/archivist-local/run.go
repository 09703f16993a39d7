package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"archivist/localstack"
	"archivist/localstack/issuer"
)

// run brings everything up, submits the sample, and shows it when it is preserved. Everything outlives this
// process, until make stop. Repeated, it deploys what has changed, and submits the next round of the sample.
func run(ctx context.Context, s *localstack.Stack) error {
	started := time.Now()
	if err := localstack.CheckTools(ctx); err != nil {
		return err
	}

	if err := portsAreFree(s); err != nil {
		return err
	}

	o, err := s.Up(ctx)
	if err != nil {
		return err
	}

	o.SampleURL = sourcesURL(s)
	if err := startIssuer(ctx, s, &o); err != nil {
		return err
	}

	if err := publish(s, o); err != nil {
		return err
	}

	// The outputs are published before: with them, a person can look at what is up even if the sample fails.
	if err := startSources(ctx, s); err != nil {
		return err
	}

	fmt.Fprintln(s.Log, "submitting the sample objects")
	ids, err := localstack.SubmitSample(ctx, o.Client(""), o.SampleURL, "make run")
	if err != nil {
		return err
	}

	if err := archivist(ctx, s.Root, append([]string{"batch", "show", "--watch"}, ids...)...); err != nil {
		return err
	}

	fmt.Printf("\nPreserved in the collection %q:\n", o.SampleCollection)
	if err := archivist(ctx, s.Root, "object", "list", "-c", o.SampleCollection); err != nil {
		return err
	}

	fmt.Printf(`
Archivist is up, after %d seconds. Next:
  dist/archivist submit FOLDER -c my-collection
                                    preserve files of your own
  dist/archivist --help             the command line
  %s/docs
                                    the API
  http://%s.execute-api.localhost:%d/prod/console/
                                    the console, in a browser
%s  make stop                         stop it and delete its data
`, int(time.Since(started).Seconds()), o.APIURL, o.All["apiId"], s.Port, asWhom(o))

	return nil
}

// asWhom says as whom commands act, and who else one can be; "" if the API demands no tokens.
func asWhom(o localstack.Outputs) string {
	if o.ClientID == "" {
		return ""
	}
	text := fmt.Sprintf(`  dist/archivist login              be another than %s, which is an administrator;
                                    it asks for no password:
`, o.ClientID)
	for _, u := range issuer.Default().Users {
		text += fmt.Sprintf("                                      %s\n", u.Name)
	}
	return text
}

// archivist runs the command line of a checkout (dist/archivist) on what is up, which it finds by the published
// outputs.
func archivist(ctx context.Context, root string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(root, "dist", "archivist"), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, os.Stdout, os.Stderr
	return cmd.Run()
}

// portsAreFree fails if another program listens where the stack will. Better now than after minutes of
// installing and building.
func portsAreFree(s *localstack.Stack) error {
	// The ports are in use then, but by the stack itself.
	if _, err := os.Stat(s.State("ministack.pid")); err == nil && s.Healthy() {
		return nil // it is up already
	}

	for _, port := range []int{s.Port, sourcesPort(s), issuerPort(s)} {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return fmt.Errorf("port %d is in use by another program; "+
				"stop that program, or choose another port: make run PORT=%d", port, s.Port+100)
		}
		// Between this and the start another program could take it: then the start fails, too.
		l.Close()
	}
	return nil
}

// publish writes the outputs where the command line and people look for them: in the state of the stack, and in
// the root of the checkout.
func publish(s *localstack.Stack, o localstack.Outputs) error {
	err := s.Save(o)
	if err != nil {
		return err
	}
	return o.Publish(s.Root)
}
