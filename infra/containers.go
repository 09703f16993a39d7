package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/app/boot"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// The size of a container: one that Fargate has ("Task CPU and memory"). Above 20 GiB, its disk
// costs extra.
const (
	containerCPU    = "2048" // 2 vCPU
	containerMemory = "8192" // MiB
	containerDisk   = 60     // GiB: a checkout twice, outputs, and what the image needs
	// containerStop is the time from SIGTERM to SIGKILL, in seconds: the program ends its
	// processes and stores the result.
	containerStop = 60
)

// The environment of task-control, of 4 KB, has all images ("Lambda quotas").
const (
	// Names of images are counted in bytes.
	mostImages     = 10
	mostImageBytes = 1000
)

// IDs of both have 8 or 17 hexadecimal digits.
var (
	subnetID = regexp.MustCompile(`^subnet-[0-9a-f]{8,17}$`)
	groupID  = regexp.MustCompile(`^sg-[0-9a-f]{8,17}$`)
	// ownImage is an image in a private registry of ECR: account, region, repository.
	ownImage = regexp.MustCompile(
		`^([0-9]{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/([a-z0-9][a-z0-9._/-]*[a-z0-9])(?:[:@]|$)`)
)

// readImages reads in which images tasks may run, and where their containers do, each
// separated by commas. An image that is named twice counts once. What goes together is only
// checked if each part is right.
func (s *Settings) readImages(images, network string) (wrong []error) {
	for image := range strings.SplitSeq(images, ",") {
		image = strings.TrimSpace(image)
		switch {
		case image == "" || slices.Contains(s.Images, image):
		case !workflow.IsImage(image):
			wrong = append(wrong,
				fmt.Errorf("taskImages: found %q; expected names of images, such as "+
					"registry/image:tag, separated by commas", image))
		default:
			s.Images = append(s.Images, image)
		}
	}

	for part := range strings.SplitSeq(network, ",") {
		part = strings.TrimSpace(part)
		switch {
		case part == "":
		case part == "public":
			s.Network.Public = true
		case subnetID.MatchString(part):
			s.Network.Subnets = append(s.Network.Subnets, part)
		case groupID.MatchString(part):
			s.Network.Groups = append(s.Network.Groups, part)
		default:
			wrong = append(wrong,
				fmt.Errorf("taskNetwork: found %q; expected ids of subnets and security groups, "+
					"and the word public, separated by commas", part))
		}
	}

	if len(wrong) == 0 {
		wrong = s.checkImages()
	}
	return wrong
}

// checkImages checks what goes together. The bounds of subnets and groups are those of a
// task's network ("AwsVpcConfiguration" in the API reference of ECS).
func (s *Settings) checkImages() (wrong []error) {
	n := s.Network
	switch {
	case len(s.Images) == 0 && (n.Public || len(n.Subnets)+len(n.Groups) > 0):
		return append(wrong,
			errors.New("taskNetwork: nothing runs there; name images in taskImages"))
	case len(s.Images) == 0:
		return nil
	case !s.Revisions:
		wrong = append(wrong,
			errors.New("taskImages: the deployment has no revision queue; add revisionQueue=true"))
	case len(s.Images) > mostImages || len(strings.Join(s.Images, ",")) > mostImageBytes:
		wrong = append(wrong,
			fmt.Errorf("taskImages: found %d; a deployment can have %d, with names of %d bytes "+
				"together", len(s.Images), mostImages, mostImageBytes))
	}

	if len(n.Subnets) == 0 || len(n.Groups) == 0 || len(n.Subnets) > 16 || len(n.Groups) > 5 {
		wrong = append(wrong,
			fmt.Errorf("taskNetwork: found %d subnets and %d security groups; containers need 1 to "+
				"16 and 1 to 5, e.g. -c taskNetwork=subnet-0abc1234,sg-0abc1234", len(n.Subnets),
				len(n.Groups)))
	}
	return wrong
}

// newContainers makes what runs tasks in the images of the settings: a cluster, and a task
// definition for each. While no task runs it costs nothing. The network is the account's own.
// There are two roles: what starts a container may pull its image and write its log; what
// runs in it may only do what the function task-runner may.
func (a *App) newContainers(p FunctionProps) {
	s := p.Settings
	if len(s.Images) == 0 {
		return
	}

	// The CDK's own construct of a cluster would make a network, too.
	cluster := awsecs.NewCfnCluster(a.Stack, jsii.String("task-containers"),
		&awsecs.CfnClusterProps{})
	logs := newLog(a.Stack, "task-containersLog", s)
	ecs := awsiam.NewServicePrincipal(jsii.String("ecs-tasks.amazonaws.com"), nil)
	run := awsiam.NewRole(a.Stack, jsii.String("task-container"), &awsiam.RoleProps{AssumedBy: ecs})
	a.grantRunner(run, p)
	start := awsiam.NewRole(a.Stack, jsii.String("task-container-start"),
		&awsiam.RoleProps{AssumedBy: ecs})
	logs.GrantWrite(start)
	a.grantPull(start, s.Images)

	at := runner.Containers{Cluster: *cluster.AttrArn(), Subnets: s.Network.Subnets,
		SecurityGroups: s.Network.Groups,
		PublicIP:       "DISABLED", Images: map[string]string{}}

	if s.Network.Public {
		at.PublicIP = "ENABLED"
	}

	log := &awsecs.CfnTaskDefinition_LogConfigurationProperty{LogDriver: jsii.String("awslogs"),
		Options: map[string]*string{"awslogs-group": logs.LogGroupName(),
			"awslogs-region":        a.Stack.Region(),
			"awslogs-stream-prefix": jsii.String(runner.ContainerName)}}

	var definitions []*string
	for _, image := range s.Images {
		sum := sha256.Sum256([]byte(image))
		id := "task-image-" + hex.EncodeToString(sum[:4]) // the same, whatever images come and go
		d := awsecs.NewCfnTaskDefinition(a.Stack, jsii.String(id), &awsecs.CfnTaskDefinitionProps{
			Family:                  jsii.String(*a.Stack.StackName() + "-" + id),
			RequiresCompatibilities: jsii.Strings("FARGATE"), NetworkMode: jsii.String("awsvpc"),
			Cpu: jsii.String(containerCPU), Memory: jsii.String(containerMemory),
			EphemeralStorage: &awsecs.CfnTaskDefinition_EphemeralStorageProperty{SizeInGiB: jsii.Number(containerDisk)},
			RuntimePlatform: &awsecs.CfnTaskDefinition_RuntimePlatformProperty{CpuArchitecture: jsii.String("X86_64"),
				OperatingSystemFamily: jsii.String("LINUX")},
			ExecutionRoleArn: start.RoleArn(), TaskRoleArn: run.RoleArn(),
			ContainerDefinitions: []any{&awsecs.CfnTaskDefinition_ContainerDefinitionProperty{
				Name: jsii.String(runner.ContainerName), Image: jsii.String(image),
				Essential:   jsii.Bool(true),
				StopTimeout: jsii.Number(containerStop), LogConfiguration: log,
				Environment: []any{&awsecs.CfnTaskDefinition_KeyValuePairProperty{Name: jsii.String(boot.EnvWork),
					Value: p.Data.Work.BucketName()}}}}})

		at.Images[image] = *d.Ref()
		definitions = append(definitions, d.Ref())
	}

	text, err := json.Marshal(at)
	if err != nil {
		panic(err)
	}

	a.Revisions.Control.AddEnvironment(jsii.String(boot.EnvTaskContainers),
		jsii.String(string(text)), nil)
	a.grantContainers(cluster, definitions, run, start)
}

// grantContainers lets the state machine run these containers, know when they have ended, and
// stop them ("Run Amazon ECS or Fargate tasks with Step Functions"; that names no cluster for
// the last, which has its tasks in its ARN). To run a task with a role is to pass it, which
// is limited to these two.
func (a *App) grantContainers(cluster awsecs.CfnCluster, definitions []*string,
	roles ...awsiam.Role) {
	m := a.Revisions.Machine
	allow(m, []string{"ecs:RunTask"}, definitions...)
	allow(m, []string{"ecs:StopTask", "ecs:DescribeTasks"}, a.Stack.FormatArn(&awscdk.ArnComponents{
		Service: jsii.String("ecs"), Resource: jsii.String("task"),
		ResourceName: jsii.String(*cluster.Ref() + "/*")}))

	var arns []*string
	for _, r := range roles {
		arns = append(arns, r.RoleArn())
	}

	m.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions: jsii.Strings("iam:PassRole"), Resources: &arns,
		Conditions: &map[string]any{"StringEquals": map[string]any{
			"iam:PassedToService": "ecs-tasks.amazonaws.com"}}}))
}

// grantPull lets ECS pull the images that are in private registries of ECR ("Amazon ECS task
// execution IAM role"). The owner of the registry permits it too, if that is another account.
func (a *App) grantPull(start awsiam.Role, images []string) {
	var repositories []*string
	for _, image := range images {
		if m := ownImage.FindStringSubmatch(image); m != nil {
			repositories = append(repositories,
				a.Stack.FormatArn(&awscdk.ArnComponents{Service: jsii.String("ecr"),
					Account: &m[1], Region: &m[2], Resource: jsii.String("repository"),
					ResourceName: &m[3]}))
		}
	}

	if len(repositories) > 0 {
		allow(start, []string{"ecr:GetAuthorizationToken"}, jsii.String("*")) // it has no resources
		allow(start, []string{"ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage",
			"ecr:GetDownloadUrlForLayer"},
			repositories...)
	}
}
