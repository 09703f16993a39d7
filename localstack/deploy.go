package localstack

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"
)

// Up installs, builds, starts and deploys. The local AWS starts while the functions are built. What is there
// already is kept: repeated, it deploys changes.
func (s *Stack) Up(ctx context.Context) (Outputs, error) {
	core := func(context.Context) error { return nil }
	if s.Core {
		core = s.installCore
	}

	for _, install := range []func(context.Context) error{s.InstallPython, core, s.InstallCDK} {
		if err := install(ctx); err != nil {
			return Outputs{}, err
		}
	}

	both, ctx2 := errgroup.WithContext(ctx)
	both.Go(func() error { return s.BuildZips(ctx2, s.Tags...) })
	both.Go(func() error {
		if err := s.Start(ctx2); err != nil {
			return err
		}
		return s.bootstrap(ctx2)
	})

	if err := both.Wait(); err != nil {
		return Outputs{}, err
	}
	return s.Deploy(ctx)
}

// bootstrap makes what the CDK needs before it deploys, once for each start of the emulator, which begins empty.
// It needs no app: it runs in a folder without one.
func (s *Stack) bootstrap(ctx context.Context) error {
	done := s.State("bootstrapped")
	if _, err := os.Stat(done); err == nil {
		return nil
	}

	_, err := s.Run(ctx, s.State(), s.Environment(), s.CDK(), "bootstrap", "aws://000000000000/"+
		Region)
	if err != nil {
		return err
	}

	if err := s.admitPlainHTTP(ctx); err != nil {
		return err
	}
	return os.WriteFile(done, nil, 0o644)
}

// Deploy deploys the app with the CDK's command line and writes the outputs. It can be repeated after a change
// of Context, which the app reads. The code of functions is what BuildZips has made.
func (s *Stack) Deploy(ctx context.Context) (Outputs, error) {
	s.Say("deploying with the CDK …")
	written := s.State("cdk-outputs.json")
	args := []string{"deploy", "--all", "--require-approval", "never", "--method", "direct",
		"--outputs-file", written,
		"--output", s.State("cdk.out"), "-c", "local=true", "-c", "code=" + s.Zips(s.Tags...)}

	for k, v := range s.Context {
		args = append(args, "-c", k+"="+v)
	}

	if _, err := s.Run(ctx, s.Path("infra"), s.Environment(), s.CDK(), args...); err != nil {
		return Outputs{}, err
	}
	return s.outputs(written)
}

// outputs are the outputs of a deployment as the CDK has written them. An output that is missing is an error
// here, and not of the first call that needs it.
func (s *Stack) outputs(written string) (o Outputs, err error) {
	data, err := os.ReadFile(written)
	if err != nil {
		return o, err
	}

	var stacks map[string]map[string]string
	if err := json.Unmarshal(data, &stacks); err != nil {
		return o, fmt.Errorf("%s: %w", written, err)
	}

	all := stacks["Archivist"]
	o = Outputs{
		EndpointURL:      s.Endpoint(),
		Region:           Region,
		TableName:        all["tableName"],
		StorageBucket:    all["storageBucket"],
		WorkBucket:       all["workBucket"],
		SampleCollection: SampleCollection,
		All:              all,
		State:            s.State(),
		APIURL: fmt.Sprintf("%s/restapis/%s/prod/_user_request_", s.Endpoint(),
			all["apiId"]),
	}

	if s.Core {
		o.APIURL = fmt.Sprintf("%s/_aws/execute-api/%s/prod", s.Endpoint(), all["apiId"])
		if err := s.fallbacks(); err != nil {
			return o, err
		}
	}

	for name, v := range map[string]string{"apiId": all["apiId"], "tableName": o.TableName,
		"storageBucket": o.StorageBucket} {
		if v == "" {
			return o, fmt.Errorf("the deployment has no output %s", name)
		}
	}
	return o, s.Save(o)
}
