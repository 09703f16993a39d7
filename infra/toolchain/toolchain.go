// Package toolchain builds what is deployed and installs the tools that do it, each at
// an exact version with a hash, below .local of the checkout.
//
// Installing is done once for each content of a requirements or lock file, so that
// every command can begin with it:
//
//	c := toolchain.Checkout{Root: root, Log: os.Stdout}
//	err := c.InstallCDK(ctx)
//	err = c.Build(ctx, "arm64")
package toolchain

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Checkout is a checkout of the repository. Whatever it installs or builds is below .local
// and dist, both of which can be removed at any time.
type Checkout struct {
	Root string
	Log  io.Writer // progress
}

// Main is the main function of a command that works on a checkout: it runs the command in the
// working folder with the program's arguments, until it ends or is interrupted. An error is
// printed, and is exit code 1.
func Main(command func(ctx context.Context, root string, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root, err := os.Getwd()
	if err != nil {
		exit(err)
	}
	if err := command(ctx, root, os.Args[1:]); err != nil {
		exit(err)
	}
}

// exit ends the program with an error.
func exit(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Say writes a line of progress.
func (c Checkout) Say(format string, args ...any) { fmt.Fprintf(c.Log, format+"\n", args...) }

// Path is a path in the checkout.
func (c Checkout) Path(parts ...string) string {
	return filepath.Join(append([]string{c.Root}, parts...)...)
}

// Run runs a command to its end and returns its standard output. On failure the last lines of
// all output are in the error. env nil is the environment of this process.
func (c Checkout) Run(ctx context.Context, dir string, env []string, name string,
	args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	var out, all bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, &all), &all
	if err := cmd.Run(); err != nil {
		return out.String(),
			fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, tail(all.String(), 60))
	}
	return out.String(), nil
}

// tail returns the last n lines.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Once calls f unless it succeeded before for the same content of file; the file mark
// remembers that. Others who begin with it meanwhile wait. If f fails, or the process dies in
// it, the next call runs it again: so f begins with what an earlier one has left.
func (c Checkout) Once(mark, file string, f func() error) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}

	sum := sha256.Sum256(data)
	want := hex.EncodeToString(sum[:])
	return alone(mark, func() error {
		if have, err := os.ReadFile(mark); err == nil && string(have) == want {
			return nil
		}
		if err := f(); err != nil {
			return err
		}
		return os.WriteFile(mark, []byte(want), 0o644)
	})
}

// alone calls f while no other process does so for the same path. The lock goes with the
// process, however that ends. It waits without a limit.
func alone(path string, f func() error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}

	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}

	defer lock.Close() // which unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	return f()
}

// Venv makes a Python environment with exactly the packages of a requirements file.
// The packages that build those published as source have hashes too: without isolation
// pip takes them from the environment, not the newest from the index.
func (c Checkout) Venv(ctx context.Context, python, dir, requirements string) error {
	if _, err := c.Run(ctx, c.Root, os.Environ(), python, "-m", "venv", "--clear",
		dir); err != nil {
		return err
	}

	for _, args := range [][]string{
		{"--only-binary", ":all:", "-r", c.Path("infra", "toolchain", "build-requirements.txt")},
		{"--no-build-isolation", "-r", requirements},
	} {
		pip := []string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check",
			"--no-deps",
			"--require-hashes"}
		_, err := c.Run(ctx, c.Root, os.Environ(), filepath.Join(dir, "bin", "python"),
			append(pip, args...)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// Environment is the environment in which AWS's tools work on the AWS at an endpoint of this
// machine. Its keys are no secrets: the emulators take any.
func Environment(endpoint, region string) []string {
	return append(os.Environ(),
		"AWS_ENDPOINT_URL="+endpoint, "AWS_ENDPOINT_URL_S3="+endpoint,
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_REGION="+region,
		"AWS_DEFAULT_REGION="+region,
		// The CDK would ask a proxy for these addresses, too.
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost",
		"CDK_DEFAULT_ACCOUNT=000000000000", "CDK_DEFAULT_REGION="+region,
		"CDK_DISABLE_VERSION_CHECK=1", "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=1")
}

// CDK is the CDK's command line. It lies outside of the Go packages' folders, because
// it comes with templates for Go projects.
func (c Checkout) CDK() string { return c.Path(".local", "cdk", "node_modules", ".bin", "cdk") }

// InstallCDK installs the CDK's command line from its lock file.
func (c Checkout) InstallCDK(ctx context.Context) error {
	return c.Once(c.Path(".local", "cdk.done"), c.Path("infra", "package-lock.json"), func() error {
		c.Say("installing the CDK command line (npm ci) …")
		return c.npm(ctx, c.Path("infra"), c.Path(".local", "cdk"))
	})
}

// npm installs the packages of a folder's lock file into another folder. npm ci installs
// exactly what is in the lock file, with its hashes.
func (c Checkout) npm(ctx context.Context, from, into string) error {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}

	for _, file := range []string{"package.json", "package-lock.json"} {
		data, err := os.ReadFile(filepath.Join(from, file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(into, file), data, 0o644); err != nil {
			return err
		}
	}

	_, err := c.Run(ctx, into, os.Environ(), "npm", "ci", "--no-audit", "--no-fund")
	return err
}

// functions that are built for deployment. A test compares the list with the folder.
var functions = []string{"admin-action", "api", "authorizer", "completed-work", "consumer", "curation",
	"pending-work", "relay",
	"revisions", "run-component", "run-stage", "scheduler", "task-control", "task-router",
	taskRunner}

// taskRunner is the function in which programs of others run.
const taskRunner = "task-runner"

// taskArch is the architecture on which programs of others run, in that function and in containers.
const taskArch = "amd64"

// Build builds every function for an architecture, as dist/FUNCTION/bootstrap, and the
// command line, dist/archivist. The files are hard links to the programs in dist/functions.
// The function that runs tasks is built for the architecture of tasks.
func (c Checkout) Build(ctx context.Context, goarch string) error {
	programs := c.Path("dist", "functions")
	if err := c.buildFunctions(ctx, programs, goarch); err != nil {
		return err
	}

	if err := c.static(ctx, "./functions/"+taskRunner, filepath.Join(programs, taskRunner), taskArch,
		lambdaOnly); err != nil {
		return err
	}

	for _, f := range functions {
		at := c.Path("dist", f, "bootstrap")
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.Remove(at); err != nil && !os.IsNotExist(err) {
			return err
		}
		if err := os.Link(filepath.Join(programs, f), at); err != nil {
			return err
		}
	}
	return nil
}

// Zips is the folder into which BuildZips builds with these tags. Each set of tags has its own,
// so that nobody deploys another's programs.
func (c Checkout) Zips(tags ...string) string {
	return c.Path("dist", strings.Join(append([]string{"local"}, tags...), "-"))
}

// BuildZips builds every function for this machine, as FUNCTION.zip in Zips, and the command
// line, dist/archivist. The files are not compressed: where they go is on this machine, too. tags
// are build tags beside those that every deployment has.
func (c Checkout) BuildZips(ctx context.Context, tags ...string) error {
	folder := c.Zips(tags...)
	return alone(folder, func() error { // two emulators can be started at once
		if err := c.buildFunctions(ctx, folder, runtime.GOARCH, tags...); err != nil {
			return err
		}
		for _, f := range functions {
			if err := zipped(filepath.Join(folder, f),
				filepath.Join(folder, f+".zip")); err != nil {
				return err
			}
		}
		return nil
	})
}

// zipped puts a program into a zip file as bootstrap, unless the file is newer than the
// program. The zip is made in memory.
func zipped(program, into string) error {
	is, err := os.Stat(program)
	if err != nil {
		return err
	}

	if was, err := os.Stat(into); err == nil && was.ModTime().After(is.ModTime()) {
		return nil
	}

	var all bytes.Buffer
	z := zip.NewWriter(&all)
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Store}
	header.SetMode(0o755)
	w, err := z.CreateHeader(header)
	if err != nil {
		return err
	}

	data, err := os.ReadFile(program)
	if err != nil {
		return err
	}

	if _, err := w.Write(data); err != nil {
		return err
	}

	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(into, all.Bytes(), 0o644)
}

// lambdaOnly is the tag that leaves out how functions were called before custom runtimes.
const lambdaOnly = "lambda.norpc"

// buildFunctions builds all functions into a folder, and the command line. A program there that
// is up to date is not linked again.
func (c Checkout) buildFunctions(ctx context.Context, into, goarch string, tags ...string) error {
	c.Say("building the functions …")
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}

	if err := c.static(ctx, "./functions/...", into, goarch,
		append([]string{lambdaOnly}, tags...)...); err != nil {
		return err
	}

	_, err := c.Run(ctx, c.Root, os.Environ(), "go", "build", "-o", c.Path("dist", "archivist"),
		"./cmd/archivist")
	return err
}

// TaskPrograms is the name of the zip file with the layer of programs for tasks, in dist.
const TaskPrograms = "task-programs.zip"

// EmptyPrograms writes an empty FUNCTION.zip for each function into a folder, and an empty layer.
// Templates that nobody deploys need no more.
func EmptyPrograms(folder string) error {
	var empty bytes.Buffer
	if err := zip.NewWriter(&empty).Close(); err != nil {
		return err
	}
	files := []string{TaskPrograms}
	for _, f := range functions {
		files = append(files, f+".zip")
	}

	for _, f := range files {
		if err := os.WriteFile(filepath.Join(folder, f), empty.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// BuildTask builds the entry point of images in which tasks run into dist.
func (c Checkout) BuildTask(ctx context.Context) error {
	return c.static(ctx, "./cmd/archivist-task", c.Path("dist", "archivist-task"), taskArch)
}

// static builds programs for Linux that need no library. Without paths, symbols and debug
// information, they are the same wherever they are built, and smaller.
func (c Checkout) static(ctx context.Context, programs, to, goarch string, tags ...string) error {
	env := append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+goarch)
	_, err := c.Run(ctx, c.Root, env, "go", "build", "-trimpath", "-tags", strings.Join(tags, ","),
		"-ldflags", "-s -w",
		"-o", to, programs)
	return err
}
