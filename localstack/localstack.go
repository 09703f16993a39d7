// Package localstack is the local AWS on which the system is developed and tested: it
// installs and starts an emulator, deploys the real CDK app to it, and stops it.
//
// There are two emulators. MiniStack is quick, and evaluates policies: each function runs
// with the session of its own role. LocalStack's open core is slower, and runs the same
// end-to-end tests as a second opinion. DynamoDB Local can be started alone, for tests of
// the table. None of them needs Docker: functions are processes of this machine.
//
//	stack := &localstack.Stack{Checkout: checkout, Name: "run", Port: 4566, Enforce: true}
//	outputs, err := stack.Up(ctx)
//	defer stack.Stop(ctx)
package localstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"archivist/infra/toolchain"
)

// Stack is one local AWS with the system deployed to it. Several can be up at once, with names and ports of
// their own.
type Stack struct {
	toolchain.Checkout
	// Name is that of the folder below .local that holds its state: logs, ids of processes, outputs.
	Name string
	// Port is on loopback. What belongs to the stack has ports that are counted from it.
	Port    int
	Core    bool              // LocalStack's open core instead of MiniStack
	Context map[string]string // of the CDK app
	Env     []string          // of the emulator, in addition to what it needs
	// Tags are those of the functions' build, e.g. "crash"; each set of them has zip files of its own.
	Tags []string
	// Enforce: policies are evaluated, and every function has its own role's session (MiniStack only).
	Enforce bool
}

// Outputs say where everything is. They are stored as JSON, and read by the command line, which takes only
// apiUrl (cmd/archivist/command), and by tools.
type Outputs struct {
	APIURL           string            `json:"apiUrl"`
	EndpointURL      string            `json:"endpointUrl"`
	Region           string            `json:"region"`
	TableName        string            `json:"tableName"`
	StorageBucket    string            `json:"storageBucket"`
	WorkBucket       string            `json:"workBucket"`
	SampleCollection string            `json:"sampleCollection"`
	SampleURL        string            `json:"sampleUrl,omitempty"` // of the web server for local content
	State            string            `json:"state"`               // the folder of its files
	Control          string            `json:"control,omitempty"`   // the socket of a demo, see Control
	All              map[string]string `json:"all"`                 // every output of the app stack
}

// Region is where everything is locally. The emulators have others, too, but each has resources of its own.
const Region = "us-east-1"

// State is a path below the stack's own folder; Stop removes all of it.
func (s *Stack) State(parts ...string) string {
	return s.Path(append([]string{".local", s.Name}, parts...)...)
}

// Environment is the environment in which AWS's tools find the local AWS.
func (s *Stack) Environment() []string { return toolchain.Environment(s.Endpoint(), Region) }

// Endpoint is the local AWS's URL.
func (s *Stack) Endpoint() string { return fmt.Sprintf("http://127.0.0.1:%d", s.Port) }

// Python is the interpreter of the project's own environment.
func (s *Stack) Python() string { return s.Path(".local", "venv", "bin", "python") }

// InstallPython makes the Python environment with MiniStack and ocfl-py, unless it is there and requirements.txt
// has not changed since. Each package is pinned by version and digest.
func (s *Stack) InstallPython(ctx context.Context) error {
	venv, wanted := s.Path(".local", "venv"), s.Path("localstack", "requirements.txt")
	return s.Once(filepath.Join(s.Path(".local"), "venv.done"), wanted, func() error {
		s.Say("installing MiniStack (Python) …")
		return s.Venv(ctx, "python3", venv, wanted)
	})
}

// Healthy reports whether the local AWS answers, within two seconds, whoever has started it.
func (s *Stack) Healthy() bool {
	if s.Core {
		return s.coreHealthy()
	}
	client := http.Client{Timeout: 2 * time.Second}
	resp, err := client.Get(s.Endpoint() + "/_ministack/health")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// emulator is the name of the local AWS.
func (s *Stack) emulator() string {
	if s.Core {
		return "LocalStack"
	}
	return "MiniStack"
}

// Start starts the local AWS, unless it is up. It outlives this process. One that another checkout, or another
// stack, has started on the same port is an error: its data would be mixed with these.
func (s *Stack) Start(ctx context.Context) error {
	if s.Healthy() {
		if !s.running() {
			return fmt.Errorf("on port %d there is a local AWS that was not started from this folder: stop it there, "+
				"or choose another port", s.Port)
		}
		return nil
	}

	s.Say("starting %s on port %d …", s.emulator(), s.Port)
	// It begins empty: nothing of an earlier one, that may have died, is there.
	if err := os.RemoveAll(s.State("bootstrapped")); err != nil {
		return err
	}

	if s.Core {
		if err := s.startCore(); err != nil {
			return err
		}
		return s.await(ctx, s.emulator(), s.Healthy)
	}

	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" +
		os.TempDir(),
		fmt.Sprintf("GATEWAY_PORT=%d", s.Port), "BIND_HOST=127.0.0.1",
		"AWS_ENDPOINT_URL=" + s.Endpoint(), "LOG_LEVEL=WARNING", fmt.Sprintf("AUTH=%t", s.Enforce)}

	if err := s.Detach("ministack", append(env, s.Env...), s.Python(),
		s.Path("localstack", "emulator.py")); err != nil {
		return err
	}
	return s.await(ctx, s.emulator(), s.Healthy)
}

// running reports whether a process of this stack is alive, by the ids in its folder. Signal 0 only asks.
func (s *Stack) running() bool {
	pids, _ := filepath.Glob(s.State("*.pid"))
	return slices.ContainsFunc(pids, func(file string) bool {
		data, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		pid, err := strconv.Atoi(string(data))
		return err == nil && syscall.Kill(pid, 0) == nil
	})
}

// await waits until something is ready, a minute at most. The error names the folder in which the log says why
// not.
func (s *Stack) await(ctx context.Context, what string, ready func() bool) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	for !ready() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not come up; its log is in %s", what, s.State())
		case <-tick.C:
		}
	}
	return nil
}

// Detach starts a process that outlives this one, in a session of its own, so that ^C does not reach it, and
// Stop ends it with its children. Its output goes to NAME.log and its process id to NAME.pid; both are in the
// folder of the stack, in which it runs.
func (s *Stack) Detach(name string, env []string, command ...string) error {
	if err := os.MkdirAll(s.State(), 0o755); err != nil {
		return err
	}

	log, err := os.Create(s.State(name + ".log"))
	if err != nil {
		return err
	}

	defer log.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.State(), env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	return os.WriteFile(s.State(name+".pid"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644)
}

// Stop ends every process of the stack and forgets its state: tables, buckets and logs are gone. It waits for
// the end of the emulator, so that its port is free afterwards. What has ended already is no error.
func (s *Stack) Stop(ctx context.Context) error {
	pids, err := filepath.Glob(s.State("*.pid"))
	if err != nil {
		return err
	}

	running := s.running()
	for _, file := range pids {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}

		pid, err := strconv.Atoi(string(data))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}

		// The session: MiniStack's functions are its children.
		if err := syscall.Kill(-pid, syscall.SIGTERM); err != nil &&
			!errors.Is(err, syscall.ESRCH) {
			return err
		}
	}

	// Without a process of this stack, what answers on the port is not ours to wait for.
	ended := func() bool { return !running || !s.Healthy() }
	if err := s.await(ctx, "the end of "+s.emulator(), ended); err != nil {
		return err
	}
	return os.RemoveAll(s.State())
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

// Save writes the outputs where tools of the checkout find them; Publish writes them for the command line.
func (s *Stack) Save(o Outputs) error {
	return o.write(s.State("outputs.json"))
}

// Load reads the outputs of a stack that is deployed; the error is fs.ErrNotExist if none is.
func (s *Stack) Load() (o Outputs, err error) {
	data, err := os.ReadFile(s.State("outputs.json"))
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(data, &o)
}

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
