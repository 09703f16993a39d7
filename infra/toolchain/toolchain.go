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
	"strings"
)

// Checkout is a checkout of the repository.
type Checkout struct {
	Root string
	Log  io.Writer // progress
}

// Main is the main function of a command that works on a checkout: it runs the command
// in the working folder with the program's arguments, until it ends or is interrupted.
func Main(command func(ctx context.Context, root string, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root, err := os.Getwd()
	if err == nil {
		err = command(ctx, root, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Say writes a line of progress.
func (c Checkout) Say(format string, args ...any) { fmt.Fprintf(c.Log, format+"\n", args...) }

// Path is a path in the checkout.
func (c Checkout) Path(parts ...string) string {
	return filepath.Join(append([]string{c.Root}, parts...)...)
}

// Run runs a command to its end and returns its standard output. On failure the last
// lines of all output are in the error.
func (c Checkout) Run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	var out, all bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, &all), &all
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, tail(all.String(), 60))
	}
	return out.String(), nil
}

// tail returns the last n lines.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Once calls f unless it succeeded before for the same content of file; the file mark
// remembers that.
func (c Checkout) Once(mark, file string, f func() error) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	want := hex.EncodeToString(sum[:])
	if have, err := os.ReadFile(mark); err == nil && string(have) == want {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(mark), 0o755); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return os.WriteFile(mark, []byte(want), 0o644)
}

// Venv makes a Python environment with exactly the packages of a requirements file.
// The packages that build those published as source have hashes too: without isolation
// pip takes them from the environment, not the newest from the index.
func (c Checkout) Venv(ctx context.Context, python, dir, requirements string) error {
	if _, err := c.Run(ctx, c.Root, os.Environ(), python, "-m", "venv", "--clear", dir); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"--only-binary", ":all:", "-r", c.Path("infra", "toolchain", "build-requirements.txt")},
		{"--no-build-isolation", "-r", requirements},
	} {
		pip := []string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
			"--require-hashes"}
		_, err := c.Run(ctx, c.Root, os.Environ(), filepath.Join(dir, "bin", "python"), append(pip, args...)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// Environment is the environment in which AWS's tools work on the AWS at an endpoint
// of this machine.
func Environment(endpoint, region string) []string {
	return append(os.Environ(),
		"AWS_ENDPOINT_URL="+endpoint, "AWS_ENDPOINT_URL_S3="+endpoint,
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_REGION="+region, "AWS_DEFAULT_REGION="+region,
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost", // the CDK would ask a proxy for these, too
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

// npm installs the packages of a folder's lock file into another folder.
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

// functions that are built for deployment.
var functions = []string{"admin-action", "api", "completed-work", "consumer", "curation", "pending-work", "relay",
	"revisions", "run-component", "run-stage", "scheduler", "task-control", "task-runner"}

// Build builds every function for an architecture, and the command line, into dist.
// tags are build tags of the functions beside those that every deployment has.
func (c Checkout) Build(ctx context.Context, goarch string, tags ...string) error {
	c.Say("building the functions …")
	for _, f := range functions {
		if err := c.buildFunction(ctx, f, c.Path("dist", f, "bootstrap"), goarch, tags...); err != nil {
			return err
		}
	}
	_, err := c.Run(ctx, c.Root, os.Environ(), "go", "build", "-o", c.Path("dist", "archivist"), "./cmd/archivist")
	return err
}

// BuildTask builds the entry point of images in which tasks run into dist, for linux/amd64, as their containers are.
func (c Checkout) BuildTask(ctx context.Context) error {
	return c.static(ctx, "./cmd/archivist-task", c.Path("dist", "archivist-task"), "amd64")
}

func (c Checkout) buildFunction(ctx context.Context, name, to, goarch string, tags ...string) error {
	return c.static(ctx, "./functions/"+name, to, goarch, append([]string{"lambda.norpc"}, tags...)...)
}

// static builds a program for Linux that needs no library.
func (c Checkout) static(ctx context.Context, program, to, goarch string, tags ...string) error {
	env := append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+goarch)
	_, err := c.Run(ctx, c.Root, env, "go", "build", "-trimpath", "-tags", strings.Join(tags, ","), "-ldflags", "-s -w",
		"-o", to, program)
	return err
}
