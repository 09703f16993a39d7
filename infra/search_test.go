package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/app/boot"
)

const domain = "https://search-my-archive-a1b2c3d4e5f6g7h8i9j0k1l2m3.eu-west-1.es.amazonaws.com"

// TestSearchDomain: the API, the consumers' function and the doctor's know the domain of the settings, and may
// make their requests to its index of objects, no others. Without a domain nobody may.
func TestSearchDomain(t *testing.T) {
	s := production
	s.SearchDomain = domain
	all := synth(t, s)
	arn := `{"Fn::Join":["",["arn:",{"Ref":"AWS::Partition"},":es:eu-west-1:",{"Ref":"AWS::AccountId"},` +
		`":domain/my-archive/objects%s"]]}`
	want := []string{`admin: es:ESHttpPost on ` + fmt.Sprintf(arn, "/_bulk"),
		`admin: es:ESHttpPost on ` + fmt.Sprintf(arn, "/_mget"), `admin: es:ESHttpPut on ` + fmt.Sprintf(arn, ""),
		`admin: es:ESHttpPut on ` + fmt.Sprintf(arn, "/_mapping"),
		`api: es:ESHttpPost on ` + fmt.Sprintf(arn, "/_search"),
		`consumer: es:ESHttpPost on ` + fmt.Sprintf(arn, "/_bulk"), `consumer: es:ESHttpPut on ` + fmt.Sprintf(arn, ""),
		`consumer: es:ESHttpPut on ` + fmt.Sprintf(arn, "/_mapping")}
	if got := searchGrants(t, all); !slices.Equal(got, want) {
		t.Errorf("granted %q", got)
	}
	for _, name := range []string{"admin", "api", "consumer"} {
		if env := text(find(t, all, "AWS::Lambda::Function", name).Properties["Environment"]); !strings.Contains(env,
			`"`+boot.EnvSearch+`":"`+domain+`"`) {
			t.Errorf("%s does not know the domain: %s", name, env)
		}
	}
	if got := searchGrants(t, synth(t, production)); got != nil {
		t.Errorf("without a domain: %q", got)
	}
}

// searchGrants are the requests to domains that are granted, with the function and the resource.
func searchGrants(t *testing.T, all map[string]resource) (out []string) {
	t.Helper()
	for _, g := range grants(t, all) {
		for _, action := range g.actions {
			if strings.HasPrefix(action, "es:") {
				name, _, _ := strings.Cut(g.policy, "Service")
				out = append(out, name+": "+action+" on "+text(g.resource))
			}
		}
	}
	slices.Sort(out)
	return out
}
