package localstack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// DeployToAWS builds the functions and deploys both stacks to the account that
// the environment's AWS credentials name. args go to the CDK, e.g. -c maxInFlight=50; the
// app refuses to be deployed without a naan and an alarmMail.
func (s *Stack) DeployToAWS(ctx context.Context, args []string) error {
	if err := s.InstallCDK(ctx); err != nil {
		return err
	}
	if err := s.Build(ctx, "arm64"); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, s.CDK(), append([]string{"deploy", "--all"}, args...)...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = s.path("infra"), os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// Lint holds the templates of a deployment to AWS against our own assertions,
// cfn-lint and checkov.
func (s *Stack) Lint(ctx context.Context) error {
	for _, step := range []func(context.Context) error{s.InstallCDK, s.installLinters, func(ctx context.Context) error { return s.Build(ctx, "arm64") }} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	dir := s.path(".local", "lint", "cdk.out")
	synth := []string{"synth", "--quiet", "--output", dir}
	for _, c := range []string{"naan=99999", "testArks=true", "alarmMail=ops@example.org", "mailFrom=archive@example.org", "reserve=true"} {
		synth = append(synth, "-c", c)
	}
	if _, err := s.run(ctx, s.path("infra"), s.environ(), s.CDK(), synth...); err != nil {
		return err
	}
	templates, err := filepath.Glob(filepath.Join(dir, "*.template.json"))
	if err != nil || len(templates) != 2 {
		return fmt.Errorf("%d templates in %s: %w", len(templates), dir, err)
	}
	bin := s.path(".local", "lint", "venv", "bin")
	checkov := []string{filepath.Join(bin, "checkov"), "--config-file", s.path("infra", "checkov.yaml"), "--compact", "--quiet", "--skip-download", "--framework", "cloudformation"}
	for _, t := range templates {
		checkov = append(checkov, "--file", t)
	}
	for _, command := range [][]string{
		{"go", "test", "-count=1", "-v", "./infra"},
		append([]string{filepath.Join(bin, "cfn-lint"), "--config-file", s.path("infra", "cfnlint.yaml")}, templates...),
		checkov,
	} {
		s.say("%s …", filepath.Base(command[0]))
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = s.Root, os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", command[0], err)
		}
	}
	return nil
}

func (s *Stack) installLinters(ctx context.Context) error {
	dir, wanted := s.path(".local", "lint"), s.path("localstack", "lint-requirements.txt")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return s.once(filepath.Join(dir, "done"), wanted, func() error {
		s.say("installing cfn-lint and checkov (Python) …")
		return s.venv(ctx, "python3", filepath.Join(dir, "venv"), wanted)
	})
}
