package main

import (
	"fmt"
	"regexp"
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
