package main

import (
	"cmp"
	"maps"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/app/boot"
	"archivist/pkg/app/crash"
)

// FunctionProps of one of our functions. The zero value of what is optional is Lambda's
// default.
type FunctionProps struct {
	Settings Settings
	Data     *Data
	Code     string // folder below functions/, built to dist/
	Timeout  time.Duration
	Memory   float64 // MB
	Disk     float64 // MB of /tmp; 0 = the 512 that every function has
	Env      map[string]*string
	Reserve  int // concurrency of its own, if the settings ask for it

	// Tenants: Lambda gives each tenant environments of its own, and each call must name one.
	Tenants bool

	// Programs of others run in it: on the architecture of tasks, with the layer of programs if the
	// settings have it.
	Programs bool

	// Bare: it knows the work bucket, and nothing else of the deployment.
	Bare bool

	// WakesItself says that it sends to the queue that feeds it.
	WakesItself bool
}

// with returns the props with more variables of the environment. It changes env, and lets
// what p has already win.
func (p FunctionProps) with(env map[string]*string) FunctionProps {
	maps.Insert(env, maps.All(p.Env))
	p.Env = env
	return p
}

// newFunction makes a function with the environment that boot reads. It grants nothing: the
// caller grants what the function needs. On AWS, functions run on ARM, which costs less;
// locally on what the machine has. Programs of others run on x86-64, as in containers.
func newFunction(scope constructs.Construct, id string, p FunctionProps) awslambda.Function {
	env := map[string]*string{boot.EnvWork: p.Data.Work.BucketName()}
	if !p.Bare {
		maps.Copy(env, deployment(p))
	}

	maps.Insert(env, maps.All(p.Env))

	architecture := awslambda.Architecture_ARM_64()
	if p.Programs || p.Settings.Local && runtime.GOARCH == "amd64" {
		architecture = awslambda.Architecture_X86_64()
	}

	var disk awscdk.Size
	if p.Disk > 0 {
		disk = awscdk.Size_Mebibytes(jsii.Number(p.Disk))
	}

	var reserved *float64
	if p.Settings.Reserve && p.Reserve > 0 {
		reserved = jsii.Number(p.Reserve)
	}

	// Lambda stops a function that feeds itself after some 16 rounds, unless that is allowed
	// ("Use Lambda recursive loop detection to prevent infinite loops").
	var loop awslambda.RecursiveLoop
	if p.WakesItself {
		loop = awslambda.RecursiveLoop_ALLOW
	}

	var tenancy awslambda.TenancyConfig
	if p.Tenants {
		tenancy = awslambda.TenancyConfig_PER_TENANT()
	}

	return awslambda.NewFunction(scope, jsii.String(id), &awslambda.FunctionProps{
		EphemeralStorageSize:         disk,
		ReservedConcurrentExecutions: reserved,
		RecursiveLoop:                loop,
		TenancyConfig:                tenancy,
		Runtime:                      awslambda.Runtime_PROVIDED_AL2023(),
		Architecture:                 architecture,
		Handler:                      jsii.String("bootstrap"),
		Code: awslambda.Code_FromAsset(jsii.String(p.Settings.code(p.Code)),
			nil),
		Timeout:     seconds(p.Timeout),
		MemorySize:  jsii.Number(p.Memory),
		Environment: &env,
		LogGroup:    newLog(scope, id+"Log", p.Settings),
	})
}

// code is where the program of a function is. It is a folder with the program bootstrap, or a
// zip file with it.
func (s Settings) code(name string) string {
	if s.Code != "" {
		return s.dist(name + ".zip")
	}
	return s.dist(name)
}

// dist is where what was built is.
func (s Settings) dist(name string) string { return filepath.Join(cmp.Or(s.Code, "../dist"), name) }

// deployment is what most functions know of the deployment.
func deployment(p FunctionProps) map[string]*string {
	env := map[string]*string{
		boot.EnvTable: p.Data.Table.TableName(), boot.EnvStorage: p.Data.Storage.BucketName(),
		boot.EnvEvents:   p.Data.Events.BucketName(),
		boot.EnvDerived:  p.Data.Derived.BucketName(),
		boot.EnvTargets:  jsii.String(p.Settings.targets()),
		boot.EnvTiming:   jsii.String(p.Settings.Timing),
		boot.EnvLimits:   jsii.String(p.Settings.Limits.String()),
		boot.EnvNAAN:     jsii.String(p.Settings.NAAN),
		boot.EnvShoulder: jsii.String(p.Settings.Shoulder),
	}

	if p.Settings.MailFrom != "" {
		env[boot.EnvMailFrom] = jsii.String(p.Settings.MailFrom)
	}

	if p.Settings.Contact != "" {
		env[boot.EnvContact] = jsii.String(p.Settings.Contact)
	}

	// Only a local stack may download from this machine, and end its processes on purpose.
	if p.Settings.Local {
		env[boot.EnvAllow] = jsii.String("127.0.0.0/8,::1/128")
		if p.Settings.Crashes != "" {
			env[crash.Env] = jsii.String(p.Settings.Crashes)
		}
	}

	if tasks, _ := p.Settings.taskARNs(); len(tasks) > 0 {
		env[boot.EnvTasks] = jsii.String(strings.Join(tasks, ","))
	}
	return env
}

// newLog makes a log group. It stays when the stack is deleted, and expires. Its lines are kept
// for six months.
func newLog(scope constructs.Construct, id string, s Settings) awslogs.LogGroup {
	policy := awscdk.RemovalPolicy_RETAIN
	if s.Local {
		policy = awscdk.RemovalPolicy_DESTROY
	}
	return awslogs.NewLogGroup(scope, jsii.String(id),
		&awslogs.LogGroupProps{Retention: awslogs.RetentionDays_SIX_MONTHS, RemovalPolicy: policy})
}

// seconds is a duration for the CDK.
func seconds(d time.Duration) awscdk.Duration {
	return awscdk.Duration_Seconds(jsii.Number(d.Seconds()))
}

func minutes(n float64) awscdk.Duration { return awscdk.Duration_Minutes(jsii.Number(n)) }
