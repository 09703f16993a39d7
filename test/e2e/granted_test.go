package e2e

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// request is a kind of call that a role made. Keys in S3 are cut after their first part,
// partition keys after their kind.
type request struct{ Role, Action, Resource, Leading string }

// exceptions are grants that no test has to use, with the reason why they are granted. who
// are names of functions and machines, "" = all of them.
var exceptions = []struct{ who, action, resource, why string }{
	{"", "sqs:ReceiveMessage", "", "Lambda polls the queue with the function's role, which MiniStack does not " +
		"evaluate"},
	{"", "sqs:DeleteMessage", "", "as above"},
	{"", "sqs:GetQueueAttributes", "", "as above"},
	{"", "sqs:GetQueueUrl", "", "as above"},
	{"", "sqs:ChangeMessageVisibility", "", "a message that is kept is hidden for a while; not every stage has to"},
	{"", "xray:", "", "Step Functions traces with the machine's role, which MiniStack does not"},
	{"", "cloudwatch:PutMetricData", "", "counts what goes wrong"},
	{"api", "cloudwatch:DescribeAlarms", "", "it is asked for by Smithy's RPC v2, which MiniStack does not evaluate"},
	{"", "ses:SendRawEmail", ":identity/example.org", "where not the address but its domain is verified"},
	{"", "ses:SendRawEmail", ":configuration-set/", "an identity may have one by default"},
	{"", "s3:ListBucket", "", "without it a missing object looks like a forbidden one"},
	{"", "s3:AbortMultipartUpload", "", "an upload is given up only when something breaks"},
	{"", "dynamodb:UpdateItem", "", "the three ways to change a row are granted together: which rows is limited"},
	{"", "dynamodb:DeleteItem", "", "as above"},
	{"", "dynamodb:ConditionCheckItem", "", "every transaction may depend on rows that it does not change"},
	{"notify", "secretsmanager:GetSecretValue", "", "a callback's secret is given in plain on an emulator"},
	{"admin", "secretsmanager:GetSecretValue", ":archivist/ezid", "EZID is asked about an ARK that no job will use"},
	{"estimate", "s3:GetObject", "/jobs/", "only another try, or a long manifest, is read again"},
	{"relay", "dynamodb:ListStreams", "", "Lambda reads the stream with the function's role, which MiniStack does " +
		"not evaluate"},
	{"relay", "dynamodb:DescribeStream", "", "as above"},
	{"relay", "dynamodb:GetRecords", "", "as above"},
	{"relay", "dynamodb:GetShardIterator", "", "as above"},
	{"relay consumer revisions", "sqs:SendMessage", ":Archivist-wakedead",
		"Lambda sends what it gave up with this role"},
	{"relay", "dynamodb:BatchGetItem", "", "what expires each hour is read many rows at once"},
	{"consumer", "s3:GetObject", "-events", "a consumer that is weeks behind reads the archive"},
	{"consumer", "s3:DeleteObject", "-derived", "files that the index has no more are removed later"},
	// Every stage can end its job; the tests make only some of them do it.
	{jobStages, keyOfRow, "BATCH#*", "the batch counts a job that ends"},
	{jobStages, keyOfRow, "SLOT", "a job that ends or waits gives its slot back"},
	{jobStages, keyOfRow, "SPACE", "a job that ends gives its space back, and one that turns out larger asks for more"},
	{jobStages, keyOfRow, "LOCK#*", "a job that ends gives its locks back"},
	{jobStages, "sqs:SendMessage", ":Archivist-wake", "what is given back wakes the scheduler"},
	{jobStages + " unpack", "states:StartExecution", "", "whoever ends the last job of a batch starts its report"},
	{"admin", "states:StartExecution", ":Archivist-ingestbatch", "as above"},
	{jobStages + " unpack report", "states:SendTask", "", "how a try ends decides which of the two answers is given"},
	{jobStages, "s3:DeleteObject", "", "what a try left half done is removed"},
	{"record", keyOfRow, "ARK#*", "a reserved name whose row was lost comes back"},
	{"record", keyOfRow, "LOCAL#*", "as above"},
	{"scheduler", "states:", ":Archivist-ingestbatch", "a batch whose wake-ups were lost is repaired as a job is"},
	{"scheduler", "states:", ":Archivist-admin-action", "an operation without progress is repaired as a job is"},
	{"scheduler", "states:", ":Archivist-component-run", "a run of a component that is lost is given up"},
	{"api", "states:", ":Archivist-component-run", "a person starts and interrupts runs of components"},
	{"consumer", "states:", ":Archivist-component-run", "a change of a subject can make an item ready"},
	{"consumer", "lambda:InvokeFunction", ":" + stationLambda, "one setting names what consumers and components call"},
	{"component", "lambda:InvokeFunction", ":" + ownLambda, "as above"},
	{"component", "dynamodb:BatchGetItem", "", "rows of a line are compared with their items if nothing is done"},
	{"scheduler", "dynamodb:BatchGetItem", "", "items of components are compared with their lines once an hour"},
	{"scheduler", "s3:DeleteObject", "/jobs/", "the work files of jobs that failed long ago"},
	{"scheduler", "s3:GetObject", "-storage", "whether the version of such a job is committed"},
	{"report", "s3:", "/batches/", "the pages of a long report"},
	{"api admin scheduler", "s3:GetObject", "/jobs/", "what a job at Storing has prepared"},
	{"revisions taskcontrol", "secretsmanager:GetSecretValue", "", "a repository with a password has an https URL, " +
		"which the tests do not serve"},
	{"pendingwork completedwork curation", keyOfRow, "", "research changes rows of all its kinds together"},
	{"pendingwork completedwork curation", "dynamodb:GetItem", "", "whether a commit whose answer was lost was made"},
	{"pendingwork", "sqs:SendMessage", ":Archivist-wakedead", "Lambda sends what it gave up with this role"},
	{"pendingwork", "lambda:InvokeFunction", "", "a pass that has more to do than time wakes itself"},
	{"api", "lambda:InvokeFunction", ":Archivist-pendingwork", "a researcher that arrives wakes the assigner"},
	{"api", "sqs:SendMessage", ":Archivist-completed-work", "researchers may report by the API"},
	{"task-run", "events:", "", "Step Functions has a rule by which it knows that containers have ended, which no " +
		"emulator makes"},
	{"revisions", "s3:", "-events", "revisions go into the bucket a month after their tasks have ended"},
	{"admin", "s3:", "/search/", "functions share the folder of the index there, and others may index again first"},
	{"admin", "s3:DeleteObject", "/jobs/", "the doctor removes work files of jobs that need none"},
	{"admin", "s3:DeleteObject", "/uploads/", "the doctor removes files of uploads that were removed days ago"},
	{"scheduler", "s3:DeleteObject", "/uploads/", "files of uploads are removed an hour after the last signed request"},
}

// refusals are calls that tests let roles make although they are not granted.
var refusals = []struct{ who, action, resource, why string }{
	{"task", "secretsmanager:GetSecretValue", ":archivist/others/", "a task names a secret of others"},
}

const jobStages = "estimate download process store record notify"

// keyOfRow stands for an action where an exception is of a leading key.
const keyOfRow = "row"

// checkGrants compares the requests of all roles with the policies that are deployed:
// each is granted, and after a run of all tests each grant was used.
func checkGrants(ctx context.Context, chosen bool) error {
	if *lane != ministack {
		return nil // only it evaluates policies
	}
	made, err := requests()
	if err != nil {
		return err
	}
	var found []error
	var seen use
	for _, who := range everybody() {
		role, err := roleOf(ctx, who)
		if err != nil {
			return err
		}
		policies, err := policiesOf(ctx, role)
		if err != nil {
			return err
		}
		var own []request
		for _, r := range made {
			if r.Role == role {
				own = append(own, r)
			}
		}
		var all []statement
		for _, name := range slices.Sorted(maps.Keys(policies)) {
			all = append(all, slices.DeleteFunc(slices.Clone(policies[name].Statement),
				func(s statement) bool { return s.Effect == "Deny" })...)
		}
		found = append(found, missing(who, own, all)...)
		seen.add(who, own, all)
	}
	if chosen {
		fmt.Println("only some of the tests ran: grants that nothing uses are not looked for")
	} else {
		found = append(found, seen.check(part(*which))...)
	}
	return errors.Join(found...)
}

// use is which grants a run of tests has not used.
type use struct {
	Policies string   // digest of all that is granted
	Unused   []string // a line for each
}

// added matches what a deployment adds to names: letters, and the time at which a stream was made.
var added = regexp.MustCompile(`-[0-9a-fA-F]{13}\b|/stream/[0-9][0-9T:.-]*`)

func (u *use) add(who string, own []request, all []statement) {
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	digest := sha256.Sum256([]byte(u.Policies + who + added.ReplaceAllString(string(text), "")))
	u.Policies = hex.EncodeToString(digest[:])
	for _, line := range unused(who, own, all) {
		u.Unused = append(u.Unused, added.ReplaceAllString(line, ""))
	}
}

// check returns an error for each grant that no test uses. The first part notes what it does not use, below .local;
// the rest looks for what neither uses. Without that note, of the same policies, nothing is known.
func (u *use) check(played part) (found []error) {
	file := stack.Path(".local", "unused-grants.json")
	switch played {
	case first:
		data, err := json.MarshalIndent(u, "", "  ")
		if err == nil {
			err = os.WriteFile(file, data, 0o644)
		}
		return []error{err}
	case rest:
		var before use
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &before)
		}
		if err != nil || before.Policies != u.Policies {
			return []error{errors.New("which grants nobody uses is known only after the first part was played, by " +
				"make test, with the same grants")}
		}
		u.Unused = slices.DeleteFunc(u.Unused, func(line string) bool { return !slices.Contains(before.Unused, line) })
	}
	for _, line := range u.Unused {
		found = append(found, errors.New(line))
	}
	return found
}

func requests() (all []request, err error) {
	f, err := os.Open(evaluated)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, err
		}
		// While a restored table was worked on, the grants were the same on that one.
		r.Resource = strings.Replace(r.Resource, ":table/"+restoredTable, ":table/"+out.TableName, 1)
		all = append(all, r)
	}
	return all, lines.Err()
}

// missing are the requests that no statement grants.
func missing(who string, own []request, all []statement) (found []error) {
	for _, r := range own {
		grants := func(s statement) bool {
			on := slices.ContainsFunc(s.Resource, func(p string) bool { return like(placeOf(p), r.Resource) })
			return on && slices.Contains(s.Action, r.Action) && s.admits(r.Leading)
		}
		if !slices.ContainsFunc(all, grants) && !wasToBeRefused(who, r) {
			err := fmt.Errorf("%s asks for %s on %s %s, which is not granted", who, r.Action, r.Resource, r.Leading)
			found = append(found, err)
		}
	}
	return found
}

func wasToBeRefused(who string, r request) bool {
	for _, x := range refusals {
		if x.who == who && x.action == r.Action && strings.Contains(r.Resource, x.resource) {
			return true
		}
	}
	return false
}

// unused are the grants that no request needs: an action, a resource, or a leading key.
func unused(who string, own []request, all []statement) (found []string) {
	for _, s := range all {
		for _, resource := range s.Resource {
			for _, action := range s.Action {
				if !slices.ContainsFunc(own, func(r request) bool {
					return r.Action == action && like(placeOf(resource), r.Resource) && s.admits(r.Leading)
				}) && !excepted(who, action, resource) {
					found = append(found, fmt.Sprintf("%s never asks for %s on %s", who, action, resource))
				}
			}
		}
		for _, key := range s.leading() {
			if !slices.ContainsFunc(own, func(r request) bool {
				return slices.Contains(s.Action, r.Action) && like(kindOf(key), r.Leading)
			}) && !excepted(who, keyOfRow, key) {
				found = append(found, fmt.Sprintf("%s never changes rows of %s", who, key))
			}
		}
	}
	return found
}

func excepted(who, action, resource string) bool {
	for _, e := range exceptions {
		named := slices.Contains(strings.Fields(cmp.Or(e.who, who)), who)
		if named && strings.HasPrefix(action, e.action) && strings.Contains(resource, e.resource) {
			return true
		}
	}
	return false
}

// leading are the kinds of rows to which a statement is limited.
func (s statement) leading() list {
	return s.Condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
}

func (s statement) admits(leading string) bool {
	return len(s.leading()) == 0 || slices.ContainsFunc(s.leading(), func(p string) bool {
		return like(kindOf(p), leading)
	})
}

// placeOf cuts a pattern of objects after the first part of their keys, as requests are.
func placeOf(pattern string) string { return keys.ReplaceAllString(pattern, "$1*") }

var keys = regexp.MustCompile(`^(arn:aws:s3:::[^/]*/[^/]*/).*`)

// kindOf cuts a pattern of partition keys after their kind, as requests are.
func kindOf(pattern string) string {
	kind, _, cut := strings.Cut(pattern, "#")
	if !cut {
		return pattern
	}
	return kind + "#*"
}

// like matches as policies do: * stands for anything.
func like(pattern, text string) bool {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$").MatchString(text)
}
