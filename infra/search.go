package main

import (
	"fmt"
	"regexp"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/views/search/opensearch"
)

// domainEndpoint is the endpoint of a public domain of Amazon OpenSearch Service: its name, an
// identifier that AWS gave it, and its region. Domain.fromDomainEndpoint of the CDK reads it alike.
var domainEndpoint = regexp.MustCompile(
	`^https://search-([a-z][a-z0-9-]{2,27})-[a-z0-9]{20,}\.([a-z0-9-]+)\.es\.amazonaws\.com(\.cn)?$`)

// checkDomain refuses what is no endpoint of a domain that the functions reach. The grants
// need the domain's name, which an endpoint of one's own does not have. Without the setting,
// the index is in a bucket, and nothing is checked.
func (s Settings) checkDomain() error {
	if s.SearchDomain == "" || domainEndpoint.MatchString(s.SearchDomain) {
		return nil
	}
	return fmt.Errorf("searchDomain: found %q; expected the endpoint of a domain of Amazon OpenSearch Service "+
		"that is not in a VPC, e.g. https://search-NAME-ID.us-east-1.es.amazonaws.com",
		s.SearchDomain)
}

// grantDomain lets a function make a request to the index of objects in the domain, if there
// is one. The domain's own policy must let the account's roles in ("Identity and Access
// Management in Amazon OpenSearch Service"). path is that of the request below the index, ""
// for the index and its documents' own.
func grantDomain(f awslambda.Function, s Settings, action, path string) {
	m := domainEndpoint.FindStringSubmatch(s.SearchDomain)
	if m == nil {
		return
	}
	allow(f, []string{action}, awscdk.Stack_Of(f).FormatArn(&awscdk.ArnComponents{
		Service:      jsii.String("es"),
		Region:       jsii.String(m[2]),
		Resource:     jsii.String("domain"),
		ResourceName: jsii.String(m[1] + "/" + opensearch.Objects + path),
	}))
}
