package boot

import (
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/app/boot/authorizer"
	"archivist/pkg/kernel/fetch"
)

// known is a setting as it is shown. Its name is that of the CDK context, or for resources that of an output.
type known struct {
	group, name, unit string
	from              string // the variable of the environment; "" = a limit of this name, or that of value
	value             func(env Env) string
	elsewhere         bool   // the environment of the API does not have it
	otherwise         string // what it is by default; of limits that is known
	says              string // as docs/deploy.md says it
}

// shown are all settings of a deployment to AWS, and the names of what it has. A test compares them with the table of
// docs/deploy.md.
var shown = []known{
	{group: "arks", name: "naan", from: EnvNAAN, says: "NAAN of minted ARKs, which are permanent"},
	{group: "arks", name: "shoulder", from: EnvShoulder, otherwise: "fk4", says: "shoulder of minted ARKs"},
	{group: "arks", name: "ezid", from: EnvEZID, says: "the URL of EZID"},
	{group: "arks", name: "ezidTarget", from: EnvEZIDTarget,
		says: "the https URL to which registered ARKs resolve, before the ARK"},
	{group: "arks", name: "arkResolver", from: EnvResolver,
		says: "ARKs resolve at the address of the API, for everybody"},

	{group: "queue", name: "maxInFlight", unit: "jobs", says: "jobs that run at once (slots)"},
	{group: "queue", name: "share", unit: "slots", says: "slots that one collection may use; 0 = all"},
	{group: "queue", name: "spaceGiB", unit: "GiB", says: "work space for downloaded files"},
	{group: "queue", name: "reserveGiB", unit: "GiB",
		says: "jobs of unknown size wait while less than the reserve is free"},
	{group: "queue", name: "patienceMinutes", unit: "minutes",
		says: "after this time a waiting job reserves freed space for itself; 0 = never"},
	{group: "queue", name: "agingMinutes", unit: "minutes",
		says: "a waiting job gains one step of priority in this time; 0 = never"},
	{group: "queue", name: "failedDays", unit: "days",
		says: "how long a failed job keeps its work files for a requeue"},
	{group: "queue", name: "failedKeepHours", unit: "hours",
		says: "how long a failed job keeps its work files even if other jobs lack the space"},
	{group: "queue", name: "keepDays", unit: "days",
		says: "how long the rows of completed batches and their jobs stay; 0 = for ever"},
	{group: "queue", name: "reserve", elsewhere: true,
		says: "reserves 29 concurrent executions for the scheduler and the API"},
	{group: "queue", name: "uploadQuotaGiB", unit: "GiB",
		says: "the uploads of a collection that are not removed have at most so many GiB together"},
	{group: "queue", name: "uploadDays", unit: "days",
		says: "an upload that is not submitted expires after so many days"},

	{group: "preservation", name: "fixityDays", unit: "days",
		says: "the stored files of an object are read again and compared with their digests " +
			"after so many days; 0 = only after a change"},
	{group: "preservation", name: "fixityGiB", unit: "GiB", says: "how much the fixity checks may read in a day"},
	{group: "preservation", name: "replicaBucket", from: EnvReplica,
		says: "a second bucket, to which objects are copied"},
	{group: "preservation", name: "replicaRegion", from: EnvReplicaRegion,
		says: "its region if it is another one"},

	{group: "mail", name: "mailFrom", from: EnvMailFrom, says: "sender of reports"},
	{group: "mail", name: "contact", from: EnvContact,
		says: "URL or address in the User-Agent of downloads and callbacks, for the operators of sources"},
	{group: "mail", name: "delayDays", unit: "days",
		says: "a mail reports a batch that has not ended after so many days"},
	{group: "mail", name: "alarmMail", elsewhere: true, says: "address that gets alarms"},

	{group: "access", name: "tokenIssuer", from: authorizer.EnvIssuer, says: "issuer of tokens: its https URL"},
	{group: "access", name: "tokenAudience", from: authorizer.EnvAudience, says: "the audiences of its tokens"},
	{group: "access", name: "tokenClaim", from: authorizer.EnvClaim, otherwise: "cognito:groups",
		says: "the claims that have roles"},
	{group: "access", name: "tokenClient", from: EnvClient,
		says: "the client of the issuer as which archivist login signs people in"},
	{group: "access", name: "tokenScopes", from: EnvScopes, otherwise: "openid profile offline_access",
		says: "the scopes that it asks for"},
	{group: "access", name: "signInDomain", elsewhere: true,
		says: "prefix of the address at which people sign in to the user pool"},
	{group: "access", name: "machineRoles", elsewhere: true,
		says: "roles that are limited to something"},
	{group: "access", name: "corsOrigins", from: EnvOrigins,
		says: "origins of web pages whose scripts may call the API and send files"},

	{group: "events", name: "consumerTargets", from: EnvTargets, says: "what consumers of events may call"},
	{group: "events", name: "componentTasks", from: EnvTasks,
		says: "containers that components may run on Amazon ECS"},

	{group: "research", name: "researchProjects", value: projectsOf, says: "names of the projects of research"},
	{group: "research", name: "researchTimes", from: EnvResearchTimes, says: "durations of research"},

	{group: "revisions", name: "revisionQueue", value: hasRevisions,
		says: "deploys the functions that run tasks of archives"},
	{group: "revisions", name: "taskPrograms", elsewhere: true, says: "layer of programs"},
	{group: "revisions", name: "taskImages", elsewhere: true, says: "container images in which tasks may run"},
	{group: "revisions", name: "taskNetwork", elsewhere: true, says: "where these containers run"},

	{group: "sources", name: "sourceBuckets", from: EnvSources,
		says: "S3 buckets of the region, separated by commas, whose objects can be submitted"},
	{group: "sources", name: "scanFunction", from: EnvScanner,
		says: "Lambda function of your own that scans files for viruses"},
	{group: "sources", name: "searchDomain", from: EnvSearch,
		says: "endpoint of a domain of Amazon OpenSearch Service that keeps the search index"},
	{group: "sources", name: "secretsKey", elsewhere: true,
		says: "KMS key that encrypts the secrets of callbacks and sources"},

	{group: "resources", name: "table", from: EnvTable, says: "the table that the archive works on"},
	{group: "resources", name: "tableStream", elsewhere: true, says: "stream of the restored table"},
	{group: "resources", name: "storageBucket", from: EnvStorage, says: "the bucket of what is preserved"},
	{group: "resources", name: "workBucket", from: EnvWork, says: "the bucket of work files and uploads"},
	{group: "resources", name: "eventsBucket", from: EnvEvents, says: "the bucket of the archive of events"},
	{group: "resources", name: "derivedBucket", from: EnvDerived,
		says: "the bucket of what is made of objects: thumbnails, manifests, the search index"},
	{group: "resources", name: "apiGatewayLogRole", elsewhere: true, says: "a role for API Gateway logs"},
	{group: "resources", name: "tags", elsewhere: true, says: "NAME=VALUE,NAME=VALUE for every resource"},
}

// projectsOf are the names of the projects of research, without their queues.
func projectsOf(env Env) string {
	var names []string
	for _, pair := range list(env(EnvResearchProjects)) {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	return strings.Join(names, ",")
}

func hasRevisions(env Env) string {
	if env(EnvRevisions) == "" {
		return ""
	}
	return "true"
}

// settingsOf are the settings that are in the environment of the API. No variable has a secret; those that a URL could
// have are removed.
func settingsOf(env Env, limits Limits) v1.Settings {
	out := v1.Settings{Version: version(), Go: runtime.Version(), Local: env("AWS_ENDPOINT_URL") != ""}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				out.Revision = s.Value
			}
		}
	}
	defaults := DefaultLimits
	is, was := limits.Named(), defaults.Named()
	for _, k := range shown {
		one := v1.Setting{Group: k.group, Name: k.name, Unit: k.unit, Default: k.otherwise, Unknown: k.elsewhere,
			Says: k.says}
		switch n := is[k.name]; {
		case n != nil:
			one.Value, one.Default = strconv.Itoa(*n), strconv.Itoa(*was[k.name])
		case k.value != nil:
			one.Value = k.value(env)
		case k.from != "":
			one.Value = env(k.from)
		}
		one.Value = fetch.RedactText(one.Value)
		out.Items = append(out.Items, one)
	}
	return out
}
