// Command deploy builds the functions, lints the templates, and deploys the system to
// an AWS account.
//
//	go run ./infra/deploy build
//	go run ./infra/deploy programs
//	go run ./infra/deploy lint
//	go run ./infra/deploy aws -c naan=… -c alarmMail=…
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"archivist/infra/programs"
	"archivist/infra/toolchain"
)

// arch is the architecture of the functions on AWS.
const arch = "arm64"

func main() { toolchain.Main(command) }

// command runs one of them, in a checkout whose root is the working folder.
func command(ctx context.Context, root string, args []string) error {
	c := toolchain.Checkout{Root: root, Log: os.Stdout}
	switch {
	case len(args) == 1 && args[0] == "build":
		return build(ctx, c)
	case len(args) == 1 && args[0] == "programs":
		return programs.Build(ctx, c, true)
	case len(args) == 1 && args[0] == "lint":
		return lint(ctx, c)
	case len(args) > 0 && args[0] == "aws":
		return deploy(ctx, c, args[1:])
	}
	return errors.New("usage: deploy build | programs | lint | aws [-c NAME=VALUE…]")
}

// build builds the functions, the command line, what images of tasks have as their entry point, and, where that is
// possible, the layer of programs for tasks.
func build(ctx context.Context, c toolchain.Checkout) error {
	if err := c.Build(ctx, arch); err != nil {
		return err
	}

	if err := programs.Build(ctx, c, false); errors.Is(err, programs.ErrNoApt) {
		c.Say("%v", err)
	} else if err != nil {
		return err
	}
	return c.BuildTask(ctx)
}

// prepare installs the CDK's command line and builds what a deployment with these arguments of the
// CDK has.
func prepare(ctx context.Context, c toolchain.Checkout, args []string) error {
	if err := c.InstallCDK(ctx); err != nil {
		return err
	}

	if hasPrograms(args) {
		if err := programs.Build(ctx, c, false); err != nil {
			return err
		}
	}
	return c.Build(ctx, arch)
}

// hasPrograms reports whether a deployment with these arguments of the CDK has the layer of programs
// for tasks.
func hasPrograms(args []string) bool {
	return slices.ContainsFunc(args, setting("revisionQueue=true")) &&
		!slices.ContainsFunc(args, setting(withoutPrograms))
}

// withoutPrograms is the setting that leaves the layer out.
const withoutPrograms = "taskPrograms=none"

// setting recognises an argument that gives a setting, in each way in which the CDK takes it.
func setting(given string) func(string) bool {
	return func(arg string) bool {
		return arg == given || arg == "-c"+given || arg == "--context="+given || arg == "-c="+given
	}
}

// deploy deploys both stacks to the account that the environment's AWS credentials
// name. args go to the CDK. The app refuses to be deployed without a naan and an
// alarmMail; and what would take something away needs a confirmation.
func deploy(ctx context.Context, c toolchain.Checkout, args []string) error {
	if err := prepare(ctx, c, args); err != nil {
		return err
	}

	args, confirmed := withoutConfirm(args)
	dir, err := compare(ctx, c, args, confirmed)
	if err != nil {
		return err
	}

	cmd := exec.CommandContext(ctx, c.CDK(), append([]string{"deploy", "--all", "--app", dir}, args...)...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Path("infra"), os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// lint validates the templates of a deployment to AWS by cfn-lint and checkov, and the
// commands of the documents by the AWS command line. Our own assertions are the tests of
// infra. The first that finds something ends it.
func lint(ctx context.Context, c toolchain.Checkout) error {
	args := allSettings()
	if err := prepare(ctx, c, args); err != nil {
		return err
	}

	if err := installLinters(ctx, c); err != nil {
		return err
	}

	templates, err := synthesise(ctx, c, args)
	if err != nil {
		return err
	}

	bin := c.Path(".local", "lint", "venv", "bin")
	cfnLint := []string{filepath.Join(bin, "cfn-lint"), "--config-file",
		c.Path("infra", "cfnlint.yaml")}
	checkov := []string{filepath.Join(bin, "checkov"), "--config-file",
		c.Path("infra", "checkov.yaml"),
		"--compact", "--quiet", "--skip-download", "--framework", "cloudformation"}

	for _, t := range templates {
		cfnLint = append(cfnLint, t)
		checkov = append(checkov, "--file", t)
	}

	documents := []string{"go", "test", "-count=1", "-v", "./test/docs",
		"-run", "TestRemoteCommands", "-aws", filepath.Join(bin, "aws")}
	for _, command := range [][]string{cfnLint, checkov, documents} {
		c.Say("%s …", filepath.Base(command[0]))
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = c.Root, os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", command[0], err)
		}
	}
	return nil
}

// allSettings are the arguments of the CDK for a deployment that uses every setting. A computer that
// cannot make the layer of programs for tasks leaves it out.
func allSettings() (args []string) {
	settings := []string{
		"naan=99999", "testArks=true", "alarmMail=ops@example.org", "mailFrom=archive@example.org",
		"reserve=true",
		"researchProjects=jingles,quotations", "revisionQueue=true",
		"taskImages=registry.example.org/vips:8.15,111122223333.dkr.ecr.us-east-1.amazonaws.com/book/tex:2",
		"taskNetwork=subnet-0abc1234,sg-0abc1234,public",
		"searchDomain=https://search-archive-a1b2c3d4e5f6g7h8i9j0k1l2m3.us-east-1.es.amazonaws.com",
	}

	if !programs.Possible() {
		settings = append(settings, withoutPrograms)
	}

	for _, s := range settings {
		args = append(args, "-c", s)
	}
	return args
}

// synthesise writes the templates of a deployment, and returns their paths.
func synthesise(ctx context.Context, c toolchain.Checkout, settings []string) ([]string, error) {
	dir := c.Path(".local", "lint", "cdk.out")
	args := append([]string{"synth", "--quiet", "--output", dir}, settings...)

	// Nobody answers there: no account is needed.
	env := toolchain.Environment("http://127.0.0.1:9", "us-east-1")
	if _, err := c.Run(ctx, c.Path("infra"), env, c.CDK(), args...); err != nil {
		return nil, err
	}

	templates, err := filepath.Glob(filepath.Join(dir, "*.template.json"))
	if err != nil {
		return nil, err
	}

	if len(templates) != 2 {
		return nil, fmt.Errorf("%d templates in %s, expected 2", len(templates), dir)
	}
	return templates, nil
}

// installLinters installs them at exact versions into a Python environment of the checkout.
func installLinters(ctx context.Context, c toolchain.Checkout) error {
	dir, wanted := c.Path(".local", "lint"), c.Path("infra", "deploy", "requirements.txt")
	return c.Once(filepath.Join(dir, "done"), wanted, func() error {
		c.Say("installing cfn-lint, checkov and the AWS command line (Python) …")
		return c.Venv(ctx, "python3", filepath.Join(dir, "venv"), wanted)
	})
}
