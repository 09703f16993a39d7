package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"

	"archivist/infra/toolchain"
)

// stacks are those of a deployment.
var stacks = []string{"ArchivistData", "Archivist"}

// template is what is compared of a stack's template.
type template struct {
	// Settings are those that were given, by name; nil if the stack is of a release that did not keep them.
	Metadata struct {
		Settings map[string]string `json:"ArchivistSettings"`
	} `json:"Metadata"`
	Resources map[string]struct {
		Type string `json:"Type"`
	} `json:"Resources"`
}

// stateful are the types of resources that have, or are, what nothing can make again: messages, rows, objects, keys.
var stateful = []string{"AWS::SQS::Queue", "AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable", "AWS::S3::Bucket",
	"AWS::ApiGateway::ApiKey", "AWS::KMS::Key", "AWS::SNS::Topic", "AWS::Events::EventBus",
	"AWS::Cognito::UserPool"}

// lists are settings whose values are names, separated by commas: each that is missing is taken away. What follows a
// "=" does not belong to the name.
var lists = []string{"researchProjects", "apiKeys", "machineRoles", "consumerTargets", "componentTasks"}

// single are settings that are not to change by mistake: what they name would no longer be used, and what was written
// would be looked for in another place or under another name.
var single = []string{"naan", "shoulder", "table", "tableStream", "replicaBucket", "replicaRegion", "searchDomain",
	"secretsKey", "revisionQueue", "tokenIssuer"}

// removals say what a deployment would take away, in order, one line each.
func removals(old, next map[string]template) (lines []string) {
	for _, stack := range stacks {
		was, is := old[stack], next[stack]
		lines = append(lines, lostSettings(was.Metadata.Settings, is.Metadata.Settings)...)
		for _, id := range slices.Sorted(maps.Keys(was.Resources)) {
			kind := was.Resources[id].Type
			if slices.Contains(stateful, kind) && is.Resources[id].Type != kind {
				lines = append(lines, fmt.Sprintf("%s: the resource %s (%s)", stack, id, kind))
			}
		}
	}
	return lines
}

// lostSettings are the settings that were given and are not, or are another now.
func lostSettings(was, is map[string]string) (lines []string) {
	for _, name := range single {
		if was[name] != "" && was[name] != is[name] {
			lines = append(lines, fmt.Sprintf("%s: it was %s, and would be %s", name, was[name],
				cmp.Or(is[name], "not set")))
		}
	}

	for _, name := range lists {
		left := namesIn(is[name])
		for _, one := range namesIn(was[name]) {
			if !slices.Contains(left, one) {
				lines = append(lines, fmt.Sprintf("%s: %s", name, one))
			}
		}
	}
	return lines
}

// namesIn are the names of a list.
func namesIn(text string) (names []string) {
	for one := range strings.SplitSeq(text, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(one), "=")
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// codeOf is what confirms exactly these lines.
func codeOf(lines []string) string {
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:4])
}

// refusal is the error that a deployment ends with that would take something away, unless that was confirmed.
func refusal(lines []string, confirmed string) error {
	if len(lines) == 0 || confirmed == codeOf(lines) {
		return nil
	}
	return fmt.Errorf("nothing was changed: compared with what is deployed, this would take away\n  %s\n"+
		"Give the settings of the last deployment again; each deployment needs all of them. If all of this is meant, "+
		"add -c confirm=%s", strings.Join(lines, "\n  "), codeOf(lines))
}

// withoutConfirm takes the confirmation out of the arguments for the CDK, to which it is no setting.
func withoutConfirm(args []string) (rest []string, confirmed string) {
	for i := 0; i < len(args); i++ {
		value := args[i]
		pair := (value == "-c" || value == "--context") && i+1 < len(args)
		if pair {
			value = args[i+1]
		}

		code, is := strings.CutPrefix(strings.TrimPrefix(strings.TrimPrefix(value, "--context="), "-c="), "confirm=")
		switch {
		case is:
			confirmed = code
		case pair:
			rest = append(rest, args[i], value)
		default:
			rest = append(rest, value)
		}

		if pair {
			i++
		}
	}
	return rest, confirmed
}

// profileOf is the profile of the AWS credentials that the CDK is told to use, "" for that of the environment.
func profileOf(args []string) string {
	for i, arg := range args {
		if value, is := strings.CutPrefix(arg, "--profile="); is {
			return value
		}
		if arg == "--profile" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// written are the templates that a synthesis has written into a folder.
func written(dir string) (map[string]template, error) {
	all := map[string]template{}
	for _, stack := range stacks {
		data, err := os.ReadFile(filepath.Join(dir, stack+".template.json"))
		if err != nil {
			return nil, err
		}

		var t template
		if err := json.Unmarshal(data, &t); err != nil {
			return nil, fmt.Errorf("%s: %w", stack, err)
		}
		all[stack] = t
	}
	return all, nil
}

// deployed are the templates of the stacks that are deployed. One that is not is left out.
func deployed(ctx context.Context, profile string) (map[string]template, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithSharedConfigProfile(profile))
	if err != nil {
		return nil, err
	}

	client, all := cloudformation.NewFromConfig(cfg), map[string]template{}
	for _, stack := range stacks {
		out, err := client.GetTemplate(ctx, &cloudformation.GetTemplateInput{
			StackName:     &stack,
			TemplateStage: types.TemplateStageOriginal,
		})

		var refused smithy.APIError
		if errors.As(err, &refused) && refused.ErrorCode() == "ValidationError" &&
			strings.Contains(refused.ErrorMessage(), "does not exist") {
			continue
		}

		if err != nil {
			return nil, fmt.Errorf("what is deployed cannot be read, so nothing was changed: %w", err)
		}

		var t template
		if err := json.Unmarshal([]byte(*out.TemplateBody), &t); err != nil {
			return nil, fmt.Errorf("the template of the stack %s: %w", stack, err)
		}
		all[stack] = t
	}
	return all, nil
}

// compare synthesises the templates of a deployment into a folder of the checkout, which it returns, and refuses what
// would take something away. What is deployed afterwards is what was compared.
func compare(ctx context.Context, c toolchain.Checkout, args []string, confirmed string) (dir string, err error) {
	dir = c.Path(".local", "deploy", "cdk.out")
	synth := append([]string{"synth", "--quiet", "--output", dir}, args...)
	if _, err := c.Run(ctx, c.Path("infra"), os.Environ(), c.CDK(), synth...); err != nil {
		return dir, err
	}

	next, err := written(dir)
	if err != nil {
		return dir, err
	}

	old, err := deployed(ctx, profileOf(args))
	if err != nil {
		return dir, err
	}
	return dir, refusal(removals(old, next), confirmed)
}
