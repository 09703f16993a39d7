package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/app/boot"
	"archivist/pkg/kernel/access"
)

// mostKeys bounds the keys that the settings name: the environment of a function, of 4 KB,
// has them all ("Lambda quotas").
const mostKeys = 20

// firstKey is the name of the key that each deployment has, in events. No other key can have it.
const firstKey = "of the deployment"

// keyName is the name of a key: a person, or a computer.
var keyName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// readKeys reads NAME=ACCESS,NAME=ACCESS. It needs the names of the projects. A key that is
// wrong is left out, and the others are read, so that all mistakes are said at once.
func (s *Settings) readKeys(text string) (wrong []error) {
	for pair := range strings.SplitSeq(text, ",") {
		name, text, _ := strings.Cut(strings.TrimSpace(pair), "=")
		g, err := access.Parse(text)
		switch {
		case pair == "":
		case !keyName.MatchString(name):
			wrong = append(wrong, fmt.Errorf("apiKeys: found %q; expected NAME=ACCESS, e.g. "+
				"bench-3=researcher:jingles; a name has lower-case letters, digits and hyphens, at most 40", pair))
		case err != nil:
			wrong = append(wrong, fmt.Errorf("apiKeys: %s: %w", name, err))
		case g.Role == access.Researcher && !slices.Contains(s.Projects, g.Of):
			wrong = append(wrong,
				fmt.Errorf("apiKeys: %s: the project %q is not among researchProjects", name,
					g.Of))
		case slices.ContainsFunc(s.Keys, func(k Key) bool { return k.Name == name }):
			wrong = append(wrong, fmt.Errorf("apiKeys: found %q twice", name))
		default:
			s.Keys = append(s.Keys, Key{name, g})
		}
	}

	if len(s.Keys) > mostKeys {
		wrong = append(wrong,
			fmt.Errorf("apiKeys: found %d; a deployment can have %d", len(s.Keys), mostKeys))
	}
	return wrong
}

// keyed says whether a call of the API needs a key. Locally it does if the settings name keys.
func (s Settings) keyed() bool { return !s.Local || len(s.Keys) > 0 }

// newKeys makes the keys of the API, and tells its function what each allows. The first one
// is always there, and is an administrator's. A key does not name its stage: the function
// knows the keys, and the stage needs the function. What a key may be used for is in the
// usage plan. Their values are made by API Gateway, and are in no template and no output.
func (a *App) newKeys(s Settings) {
	if !s.keyed() {
		return
	}

	plan := a.Rest.AddUsagePlan(jsii.String("Plan"), &awsapigateway.UsagePlanProps{
		ApiStages: &[]*awsapigateway.UsagePlanPerApiStage{{Api: a.Rest,
			Stage: a.Rest.DeploymentStage()}},
		Throttle: &awsapigateway.ThrottleSettings{RateLimit: jsii.Number(50),
			BurstLimit: jsii.Number(100)}})

	var ids []string
	allow := map[string][]string{} // ids and names of keys, by what they allow
	add := func(id, name string, grant access.Grant, about string) *string {
		key := awsapigateway.NewApiKey(a.Rest, jsii.String(id), &awsapigateway.ApiKeyProps{
			Description: jsii.String(about + ": " + grant.String())})
		plan.AddApiKey(key, nil)
		allow[grant.String()] = append(allow[grant.String()], *key.KeyId()+"/"+name)
		return key.KeyId()
	}

	first := add("Key", firstKey, access.Grant{Role: access.Administrator}, "of the deployment")
	awscdk.NewCfnOutput(a.Stack, jsii.String("apiKeyId"), &awscdk.CfnOutputProps{Value: first})
	for _, k := range s.Keys {
		ids = append(ids, k.Name+"="+*add("Key-"+k.Name, k.Name, k.Grant, k.Name))
	}

	if len(ids) > 0 {
		awscdk.NewCfnOutput(a.Stack, jsii.String("apiKeyIds"), &awscdk.CfnOutputProps{
			Value: jsii.String(strings.Join(ids, ","))})
	}

	// In order, so that the same keys give the same template.
	var pairs []string
	for _, grant := range slices.Sorted(maps.Keys(allow)) {
		pairs = append(pairs, grant+"="+strings.Join(allow[grant], "+"))
	}

	a.API.AddEnvironment(jsii.String(boot.EnvKeys), jsii.String(strings.Join(pairs, ",")), nil)
}
