// Package localstack is the local AWS on which the system is developed and tested: it
// installs and starts an emulator, deploys the real CDK app to it, and stops it.
//
// There are two emulators. MiniStack is quick, and evaluates policies: each function runs
// with the session of its own role. LocalStack's open core is slower, and runs the same
// end-to-end tests as a second opinion. DynamoDB Local can be started alone, for tests of
// the table. None of them needs Docker: functions are processes of this machine.
//
//	stack := &localstack.Stack{Checkout: checkout, Name: "run", Port: 4566, Enforce: true}
//	outputs, err := stack.Up(ctx, runtime.GOARCH)
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

	"archivist/infra/toolchain"
)

// Stack is one local AWS with the system deployed to it.
type Stack struct {
	toolchain.Checkout
	Name    string            // of the folder below .local that holds its state
	Port    int               // on loopback
	Core    bool              // LocalStack's open core instead of MiniStack
	Context map[string]string // of the CDK app
	Env     []string          // of the emulator, in addition to what it needs
	Tags    []string          // of the functions' build, e.g. "crash"
	Enforce bool              // policies are evaluated; every function has its own role's session (MiniStack only)
}

// Outputs say where everything is.
type Outputs struct {
	APIURL           string            `json:"apiUrl"`
	EndpointURL      string            `json:"endpointUrl"`
	Region           string            `json:"region"`
	TableName        string            `json:"tableName"`
	StorageBucket    string            `json:"storageBucket"`
	WorkBucket       string            `json:"workBucket"`
	SampleCollection string            `json:"sampleCollection"`
	SampleURL        string            `json:"sampleUrl,omitempty"`
	All              map[string]string `json:"all"` // every output of the app stack
}

// Region is where everything is locally.
const Region = "us-east-1"

// State is a path below the stack's own folder.
func (s *Stack) State(parts ...string) string {
	return s.Path(append([]string{".local", s.Name}, parts...)...)
}

// Environment is the environment in which AWS's tools find the local AWS.
func (s *Stack) Environment() []string { return toolchain.Environment(s.Endpoint(), Region) }

// Endpoint is the local AWS's URL.
func (s *Stack) Endpoint() string { return fmt.Sprintf("http://127.0.0.1:%d", s.Port) }

// Python is the interpreter of the project's own environment.
func (s *Stack) Python() string { return s.Path(".local", "venv", "bin", "python") }

// InstallPython makes the Python environment with MiniStack and ocfl-py.
func (s *Stack) InstallPython(ctx context.Context) error {
	venv, wanted := s.Path(".local", "venv"), s.Path("localstack", "requirements.txt")
	return s.Once(filepath.Join(s.Path(".local"), "venv.done"), wanted, func() error {
		s.Say("installing MiniStack (Python) …")
		return s.Venv(ctx, "python3", venv, wanted)
	})
}

// Healthy reports whether the local AWS answers.
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

// Start starts the local AWS, unless it is up. It outlives this process. One that another checkout, or
// another stack, has started on the same port is an error: its data would be mixed with these.
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

	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir(),
		fmt.Sprintf("GATEWAY_PORT=%d", s.Port), "BIND_HOST=127.0.0.1",
		"AWS_ENDPOINT_URL=" + s.Endpoint(), "LOG_LEVEL=WARNING", fmt.Sprintf("AUTH=%t", s.Enforce)}
	if err := s.Detach("ministack", append(env, s.Env...), s.Python(),
		s.Path("localstack", "emulator.py")); err != nil {
		return err
	}
	return s.await(ctx, s.emulator(), s.Healthy)
}

// running reports whether a process of this stack is alive.
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

// Detach starts a process that outlives this one, in a session of its own. Its
// output goes to NAME.log and its process id to NAME.pid.
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

// Stop ends every process of the stack and forgets its state.
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
		if err := syscall.Kill(-pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	ended := func() bool { return !running || !s.Healthy() }
	if err := s.await(ctx, "the end of "+s.emulator(), ended); err != nil {
		return err
	}
	return os.RemoveAll(s.State())
}

// Deploy deploys the app with the CDK's command line and writes the outputs.
func (s *Stack) Deploy(ctx context.Context) (Outputs, error) {
	s.Say("deploying with the CDK …")
	args := []string{"--output", s.State("cdk.out"), "-c", "local=true"}
	for k, v := range s.Context {
		args = append(args, "-c", k+"="+v)
	}
	env := s.Environment()
	if _, err := os.Stat(s.State("bootstrapped")); err != nil {
		bootstrap := append([]string{"bootstrap", "aws://000000000000/" + Region}, args...)
		if _, err := s.Run(ctx, s.Path("infra"), env, s.CDK(), bootstrap...); err != nil {
			return Outputs{}, err
		}
		if err := s.admitPlainHTTP(ctx); err != nil {
			return Outputs{}, err
		}
		if err := os.WriteFile(s.State("bootstrapped"), nil, 0o644); err != nil {
			return Outputs{}, err
		}
	}

	written := s.State("cdk-outputs.json")
	deploy := append([]string{"deploy", "--all", "--require-approval", "never", "--outputs-file", written}, args...)
	if _, err := s.Run(ctx, s.Path("infra"), env, s.CDK(), deploy...); err != nil {
		return Outputs{}, err
	}
	return s.outputs(written)
}

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
	o = Outputs{EndpointURL: s.Endpoint(), Region: Region, TableName: all["tableName"],
		StorageBucket: all["storageBucket"], WorkBucket: all["workBucket"],
		SampleCollection: SampleCollection, All: all,
		APIURL: fmt.Sprintf("%s/restapis/%s/prod/_user_request_", s.Endpoint(), all["apiId"])}
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

// Save writes the outputs where tools find them.
func (s *Stack) Save(o Outputs) error {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(s.State("outputs.json"), append(data, '\n'), 0o644)
}

// Load reads the outputs of a stack that is deployed.
func (s *Stack) Load() (o Outputs, err error) {
	data, err := os.ReadFile(s.State("outputs.json"))
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(data, &o)
}

// Up installs, builds, starts and deploys.
func (s *Stack) Up(ctx context.Context, goarch string) (Outputs, error) {
	core := func(context.Context) error { return nil }
	if s.Core {
		core = s.installCore
	}
	for _, step := range []func(context.Context) error{s.InstallPython, core, s.InstallCDK,
		func(ctx context.Context) error { return s.Build(ctx, goarch, s.Tags...) }, s.Start} {
		if err := step(ctx); err != nil {
			return Outputs{}, err
		}
	}
	return s.Deploy(ctx)
}
