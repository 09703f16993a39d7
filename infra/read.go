package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"archivist/pkg/app/boot"
	"archivist/pkg/formats/ark"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/cors"
	"archivist/pkg/kernel/nearest"
)

// switches are the settings that have one value, or none.
var switches = map[string]string{"apiGatewayLogRole": "existing", "arkResolver": "public",
	"local": "true", "reserve": "true",
	"revisionQueue": "true", "taskPrograms": "none", "testArks": "true"}

// read takes the settings out of what is given to the CDK as its context. A deployment
// to AWS has no default for what is permanent, and for who hears of failures. The error has a
// line for each wrong or unknown setting. The lines are in order, so the same settings have the same message.
func read(given map[string]any) (s Settings, err error) {
	asked := map[string]bool{}
	context := func(name string) string {
		asked[name] = true
		text, _ := given[name].(string)
		return text
	}

	s = Settings{Limits: boot.DefaultLimits, Timing: cmp.Or(context("timing"), "production"),
		NAAN: context("naan"), Shoulder: cmp.Or(context("shoulder"), "fk4"),
		AlarmMail: context("alarmMail"), MailFrom: context("mailFrom"), Contact: context("contact"),
		Table: context("table"), TableStream: context("tableStream"),
		SecretsKey: context("secretsKey"),
		Crashes:    context("crashes"), Code: context("code"), Open: context("authorizer") == "none",
		SearchDomain: context("searchDomain"),
		Local:        context("local") == "true", Reserve: context("reserve") == "true",
		Issuer: issuerOf(context), Revisions: context("revisionQueue") == "true",
		NoPrograms: context("taskPrograms") == "none",
		Resolver:   context("arkResolver") == "public",
		EZID:       context("ezid"), EZIDTarget: context("ezidTarget"), Scanner: context("scanFunction"),
		ReplicaBucket: context("replicaBucket"), ReplicaRegion: context("replicaRegion"),
		LogRoleExists: context("apiGatewayLogRole") == "existing"}

	var wrong []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}

	// Limits have defaults on AWS, too; each can be given by its own name.
	for name, to := range s.Limits.Named() {
		given := cmp.Or(context(name), strconv.Itoa(*to))
		if n, err := strconv.Atoi(given); err == nil {
			*to = n
		} else {
			check(false, "%s: found %q; expected a whole number, e.g. -c %s=%d", name, given, name,
				*to)
		}
	}

	if err := s.Limits.Check(); err != nil {
		wrong = append(wrong, err)
	}

	_, known := ingest.Timings[s.Timing]
	check(known && (s.Local || s.Timing == "production"),
		"timing: found %q; expected production, or locally also quick or slow", s.Timing)
	check(s.Table == "" || tableName.MatchString(s.Table),
		"table: found %q; expected the name of a table, e.g. -c table=archivist-restored", s.Table)
	check(s.TableStream == "" || s.Table != "" && streamOf(s.TableStream) == s.Table,
		"tableStream: found %q; expected the ARN of the stream of the table that the setting table names",
		s.TableStream)

	check(s.SecretsKey == "" || keyARN.MatchString(s.SecretsKey),
		"secretsKey: found %q; expected the ARN of a KMS key, e.g. arn:aws:kms:us-east-1:111122223333:key/…",
		s.SecretsKey)

	check(s.Crashes+s.Code == "" && !s.Open || s.Local, "crashes, code, authorizer: for local stacks only")
	for name, value := range switches {
		check(cmp.Or(context(name), value) == value, "%s: found %q; expected %s or nothing", name,
			context(name), value)
	}

	// Each group of settings has a function; nil errors are left out by Join.
	s.Tags, err = tags(context("tags"))
	wrong = append(append(wrong, err, s.identity(context("testArks") == "true"), s.checkDomain()), s.people()...)
	wrong = append(append(wrong, s.checkReplica(), s.checkEZID(), s.checkScanner(),
		s.readOrigins(context("corsOrigins"))), s.readTargets(context("consumerTargets"))...)
	wrong = append(append(wrong, s.readSources(context("sourceBuckets"))...), s.readTasks(context("componentTasks"))...)
	wrong = append(append(wrong, s.readImages(context("taskImages"), context("taskNetwork"))...),
		s.readResearch(context("researchProjects"), context("researchTimes"))...)
	wrong = append(wrong, s.readUsers(context("signInDomain"), context("machineRoles"), context("apiKeys"))...)
	wrong = append(append(wrong, s.checkIssuer()...), unknown(given, asked)...) // after all others
	slices.SortFunc(wrong,
		func(a, b error) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return s, errors.Join(wrong...)
}

// unknown refuses what is no setting: one that is misspelt would be left out, and with it what it stands for. Names of
// the CDK's own have a mark that no setting has, e.g. "@aws-cdk/core:checkSecretUsage", but for that of the notices
// that "cdk acknowledge" has silenced.
func unknown(given map[string]any, known map[string]bool) (wrong []error) {
	names := slices.Sorted(maps.Keys(known))
	for name, value := range given {
		if known[name] {
			if _, is := value.(string); !is {
				wrong = append(wrong, fmt.Errorf("%s: found %v; expected a text", name, value))
			}
			continue
		}
		if strings.ContainsAny(name, "@:/") || name == "acknowledged-issue-numbers" {
			continue
		}

		text := name + ": there is no such setting"
		if near := nearest.To(name, names); near != "" {
			text += "; did you mean " + near + "?"
		}
		wrong = append(wrong, errors.New(text))
	}
	return wrong
}

// checkReplica checks the names of the second bucket and of its region. Whether the bucket
// exists, and has versions, is not checked.
func (s *Settings) checkReplica() error {
	switch {
	case s.ReplicaBucket != "" && !bucketName.MatchString(s.ReplicaBucket):
		return fmt.Errorf("replicaBucket: found %q; expected the name of a bucket, e.g. archive-copy", s.ReplicaBucket)
	case s.ReplicaRegion != "" &&
		(s.ReplicaBucket == "" || !regionName.MatchString(s.ReplicaRegion)):
		return fmt.Errorf("replicaRegion: found %q; expected the region of replicaBucket, e.g. eu-west-1",
			s.ReplicaRegion)
	}
	return nil
}

// siteURL is the address of a site without a path, or with one; what is behind it begins with a slash.
var siteURL = regexp.MustCompile(`^https://[a-zA-Z0-9.-]+(:[0-9]+)?(/[a-zA-Z0-9._~/-]*)?$`)

// checkEZID checks where ARKs are registered. Locally it may be a server without TLS.
func (s *Settings) checkEZID() error {
	fits := func(text string) bool {
		return siteURL.MatchString(text) || s.Local && siteURL.MatchString(strings.Replace(text, "http:", "https:", 1))
	}
	switch {
	case s.EZID+s.EZIDTarget == "":
		return nil
	case !fits(s.EZID):
		return fmt.Errorf("ezid: found %q; expected the URL of EZID, e.g. https://ezid.cdlib.org", s.EZID)
	case !fits(s.EZIDTarget):
		return fmt.Errorf("ezidTarget: found %q; expected the https URL that stands before an ARK where objects are "+
			"shown, e.g. https://archive.example.org", s.EZIDTarget)
	}
	return nil
}

// checkScanner checks that the virus scanner is a function.
func (s *Settings) checkScanner() error {
	if s.Scanner == "" || functionARN.MatchString(s.Scanner) {
		return nil
	}
	return fmt.Errorf("scanFunction: found %q; expected the ARN of a function", s.Scanner)
}

// readOrigins reads of which origins the pages are whose scripts may call the API.
func (s *Settings) readOrigins(text string) (err error) {
	if s.Origins, err = cors.Origins(text); err != nil {
		return fmt.Errorf("corsOrigins: %w", err)
	}
	return nil
}

// mostSources is how many buckets sourceBuckets may name: each is in the policies of three functions.
const mostSources = 20

// readSources reads the buckets whose objects may be submitted.
func (s *Settings) readSources(text string) (wrong []error) {
	if text == "" {
		return nil
	}

	s.Sources = strings.Split(text, ",")
	if len(s.Sources) > mostSources {
		wrong = append(wrong, fmt.Errorf("sourceBuckets: %d buckets; at most %d are accepted", len(s.Sources),
			mostSources))
	}
	for _, name := range s.Sources {
		if !bucketName.MatchString(name) {
			wrong = append(wrong, fmt.Errorf("sourceBuckets: found %q; expected names of buckets, separated by commas",
				name))
		}
	}
	return wrong
}

// testNAANs belong to no archive: their ARKs can never be resolved.
var testNAANs = []string{"12345", "99999"}

// What is checked here would otherwise be refused by AWS in the middle of a deployment, or
// not at all.
var (
	// tableName is what DynamoDB takes as one (API reference, "CreateTable").
	tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)
	// contactURL is a URL that a person can follow; it stands in a header.
	contactURL = regexp.MustCompile(`^(https?://|mailto:)[!-'*-:<-~]+$`)
	// bucketName is what S3 takes as one ("General purpose bucket naming rules").
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	regionName = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]$`)
	keyARN     = regexp.MustCompile(`^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$`)
)

// identity checks whose ARKs are minted: they are permanent. It sets the NAAN of a local
// stack. A shoulder is right if it begins an ARK that reads back as the same.
func (s *Settings) identity(tests bool) error {
	if s.NAAN == "" && s.Local {
		s.NAAN = "99999"
	}

	shoulder := ark.ARK{NAAN: s.NAAN, Name: s.Shoulder}
	parsed, err := ark.Parse(shoulder.String())
	switch {
	case s.NAAN == "":
		return errors.New("naan: give the number of your organization, e.g. -c naan=… " +
			"(https://arks.org, free of charge): minted ARKs are permanent. " +
			"For a trial: -c naan=99999 -c testArks=true")
	case err != nil || parsed != shoulder:
		return fmt.Errorf("naan, shoulder: %s does not begin an ARK", shoulder)
	case slices.Contains(testNAANs, s.NAAN) && !s.Local && !tests:
		return fmt.Errorf("naan: %s is for tests; its ARKs can never be resolved. For a trial: -c testArks=true",
			s.NAAN)
	}
	return nil
}

// people checks the addresses to which, and in whose name, the deployment writes. An alarm
// that nobody gets has to be asked for by name.
func (s *Settings) people() (wrong []error) {
	if s.AlarmMail == "" && !s.Local {
		wrong = append(wrong, errors.New("alarmMail: give the address to which alarms are sent, "+
			"e.g. -c alarmMail=ops@example.org. Without it nobody hears of a failure; "+
			"if you mean that: -c alarmMail=none"))
	}

	if s.AlarmMail == "none" {
		s.AlarmMail = ""
	}

	for name, address := range map[string]string{"alarmMail": s.AlarmMail, "mailFrom": s.MailFrom} {
		if a, err := mail.ParseAddress(address); address != "" &&
			(err != nil || a.Address != address) {
			wrong = append(wrong,
				fmt.Errorf("%s: found %q; expected a mail address, e.g. archive@example.org",
					name, address))
		}
	}

	if s.Contact != "" && !contactURL.MatchString(s.Contact) {
		wrong = append(wrong,
			fmt.Errorf("contact: found %q; expected a URL of a web page or a mail address, "+
				"e.g. https://archive.example.org or mailto:archive@example.org", s.Contact))
	}
	return wrong
}

// tags reads NAME=VALUE,NAME=VALUE. Names and values have the lengths and the characters that
// all services take ("Tag naming limits and requirements"). Every deployment has the tag
// application.
func tags(text string) (map[string]string, error) {
	out := map[string]string{"application": "archivist"}
	allowed := regexp.MustCompile(`^[\p{L}\p{N} _.:/+@-]{1,128}=[\p{L}\p{N} _.:/+@-]{0,256}$`)
	for pair := range strings.SplitSeq(text, ",") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		if !allowed.MatchString(pair) || strings.HasPrefix(strings.ToLower(name), "aws:") {
			return out, fmt.Errorf("tags: found %q; expected NAME=VALUE,NAME=VALUE", pair)
		}
		out[name] = value
	}
	return out, nil
}

// issuerOf reads the settings of the issuer.
func issuerOf(context func(name string) string) Issuer {
	return Issuer{
		URL:      context("tokenIssuer"),
		Audience: context("tokenAudience"),
		Claim:    context("tokenClaim"),
		Client:   context("tokenClient"),
		Scopes:   context("tokenScopes"),
	}
}
