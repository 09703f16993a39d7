package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/cxapi"
)

// mostEnvironment is the most that the names and values of a function's variables have together, in bytes ("Lambda
// quotas").
const mostEnvironment = 4096

// tolerance is how much larger, as a share, an environment may seem than AWS takes: what is only known at the
// deployment is estimated by its longest values, and what might fit is not refused here.
const tolerance = 0.1

// checkEnvironments refuses a deployment that AWS would refuse in its middle: of which a function's environment is too
// large. Each setting is bounded by itself, but not their sum.
func checkEnvironments(assembly cxapi.CloudAssembly) error {
	for _, stack := range *assembly.Stacks() {
		data, err := json.Marshal(stack.Template())
		if err != nil {
			return err
		}
		if err := tooLarge(data); err != nil {
			return err
		}
	}
	return nil
}

// tooLarge says which function of a template has too large an environment, nil if none has.
func tooLarge(template []byte) error {
	var t struct {
		Resources map[string]struct {
			Type       string
			Properties struct {
				Environment struct{ Variables map[string]any }
			}
		}
	}
	if err := json.Unmarshal(template, &t); err != nil {
		return err
	}

	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		size := 0
		for name, v := range t.Resources[id].Properties.Environment.Variables {
			size += len(name) + bytesOf(v)
		}
		if t.Resources[id].Type == "AWS::Lambda::Function" && float64(size) > mostEnvironment*(1+tolerance) {
			return fmt.Errorf("the environment of the function %s would have about %d bytes, and AWS takes %d: use "+
				"fewer or shorter names in researchProjects, consumerTargets, sourceBuckets, corsOrigins, "+
				"componentTasks or taskImages", id, size, mostEnvironment)
		}
	}
	return nil
}

// bytesOf is about how long a value of a template is when it is known: a region has at most 14 bytes; the name of a
// bucket, 63; the id of a client of the user pool, 26; the URL of a project's queue, 120, with a name of 40; that of
// another queue, or the ARN of a state machine, 100.
func bytesOf(v any) (n int) {
	switch x := v.(type) {
	case string:
		return len(x)
	case []any:
		for _, part := range x {
			n += bytesOf(part)
		}
		return n
	case map[string]any:
		ref, _ := x["Ref"].(string)
		switch {
		case strings.HasPrefix(ref, "AWS::"):
			return 14
		case strings.HasPrefix(ref, "pendingwork"):
			return 120
		case strings.HasPrefix(ref, "Users"):
			return 26
		case x["Fn::ImportValue"] != nil:
			return 63
		case x["Fn::Join"] != nil:
			return bytesOf(x["Fn::Join"])
		}
	}
	return 100
}
