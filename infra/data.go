package main

import (
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscognito"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/ingest/upload"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/cors"
	"archivist/pkg/kernel/table/schema"
	"archivist/pkg/views/versionzip"
)

// Data is the stack of what must never be lost: the table and the buckets. A deletion of the
// stack keeps them. It is deployed before the app stack, which refers to it.
type Data struct {
	awscdk.Stack
	Table   awsdynamodb.ITable
	Storage awss3.Bucket
	Work    awss3.Bucket
	Events  awss3.Bucket // the archive of the event log
	Derived awss3.Bucket // what is made from other data, and can be made again
	// Users is the user pool, and Issuer the same as an issuer of tokens; nil: the settings name another one, or none.
	Users  awscognito.UserPool
	Issuer *Issuer
}

// NewData makes the data stack. Buckets with content that is the only copy keep all versions;
// the others can be made again, or belong to jobs.
func NewData(scope constructs.Construct, id string, s Settings) *Data {
	d := &Data{Stack: awscdk.NewStack(scope, jsii.String(id),
		&awscdk.StackProps{Description: jsii.String("Archivist: the table, the buckets, the users"),
			TerminationProtection: jsii.Bool(!s.Local)})}

	own := newTable(d.Stack, s)
	d.Table = own
	// The app stack imports these unless it works on a restored table. They stay
	// exported: CloudFormation refuses to remove an export that another stack still
	// imports, and this stack is deployed before that one (AWS CloudFormation User
	// Guide, "Get exported outputs from a deployed CloudFormation stack").
	d.Stack.ExportValue(own.TableName(), nil)
	d.Stack.ExportValue(own.TableArn(), nil)
	d.Stack.ExportValue(own.TableStreamArn(), nil)
	// An upload may go on for days, also after a requeue. If it is older, its job is gone, and so
	// is what a depositor had begun to send: that is removed at the end of uploadDays.
	days := max(s.Limits.FailedDays, s.Limits.UploadDays)
	unfinished := &awss3.LifecycleRule{
		Id:                                  jsii.String("unfinished-uploads"),
		AbortIncompleteMultipartUploadAfter: awscdk.Duration_Days(jsii.Number(days + 30)),
		Enabled:                             jsii.Bool(true),
	}

	d.Storage = newBucket(d.Stack, "Storage", s, true, &[]*awss3.LifecycleRule{unfinished})
	// Work files of a job have no expiration: it counts from when an object was made, and a
	// job may wait for ever. The system removes them: at the end, or failedDays after a
	// failure. No work file needs a second version; a bucket that once had versions loses them.
	d.Work = newBucket(d.Stack, "Work", s, false, &[]*awss3.LifecycleRule{unfinished,
		{
			Id:         jsii.String("forgotten-manifests"),
			Prefix:     jsii.String(workspace.Batches),
			Expiration: awscdk.Duration_Days(jsii.Number(14)),
			Enabled:    jsii.Bool(true),
		},
		{
			Id:                          jsii.String("old-versions"),
			NoncurrentVersionExpiration: awscdk.Duration_Days(jsii.Number(1)),
			ExpiredObjectDeleteMarker:   jsii.Bool(true),
			Enabled:                     jsii.Bool(true),
		},
	})

	d.share(s)

	d.Events = newBucket(d.Stack, "Events", s, true, &[]*awss3.LifecycleRule{unfinished})
	d.Derived = newBucket(d.Stack, "Derived", s, false, &[]*awss3.LifecycleRule{unfinished,
		{
			Id:         jsii.String("zip-files"),
			Prefix:     jsii.String(versionzip.Folder),
			Expiration: awscdk.Duration_Days(jsii.Number(versionzip.Days)),
			Enabled:    jsii.Bool(true),
		},
	})
	for _, b := range []awss3.Bucket{d.Storage, d.Events} {
		b.AddToResourcePolicy(neverDeleteVersions(b))
	}
	d.Users, d.Issuer = newUsers(d.Stack, s)
	return d
}

// On returns what the app stack works on: d, or d with a table that was restored
// under another name, with the same indexes. Such a table has no stream until one is made for
// it ("Restoring a table to a point in time"); the settings then name it.
func (d *Data) On(app awscdk.Stack, s Settings) *Data {
	if s.Table == "" {
		return d
	}

	var indexes []string
	for _, ix := range schema.Indexes {
		indexes = append(indexes, ix.Name)
	}

	other := *d
	attributes := &awsdynamodb.TableAttributes{TableName: jsii.String(s.Table),
		GlobalIndexes: jsii.Strings(indexes...)}
	if s.TableStream != "" {
		attributes.TableStreamArn = jsii.String(s.TableStream)
	}

	other.Table = awsdynamodb.Table_FromTableAttributes(app, jsii.String("Restored"), attributes)
	return &other
}

// newTable makes the table from its schema, with recovery to any second of the last 35 days,
// and protected from deletion on AWS.
func newTable(scope constructs.Construct, s Settings) awsdynamodb.Table {
	key := func(name string) *awsdynamodb.Attribute {
		return &awsdynamodb.Attribute{Name: jsii.String(name),
			Type: awsdynamodb.AttributeType_STRING}
	}

	recovery := &awsdynamodb.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: jsii.Bool(true)}
	t := awsdynamodb.NewTable(scope, jsii.String("Table"), &awsdynamodb.TableProps{
		PartitionKey:                     key(schema.PK),
		SortKey:                          key(schema.SK),
		BillingMode:                      awsdynamodb.BillingMode_PAY_PER_REQUEST,
		TimeToLiveAttribute:              jsii.String(schema.TTL),
		Stream:                           awsdynamodb.StreamViewType_NEW_AND_OLD_IMAGES,
		PointInTimeRecoverySpecification: recovery,
		Encryption:                       awsdynamodb.TableEncryption_AWS_MANAGED,
		DeletionProtection:               jsii.Bool(!s.Local),
		RemovalPolicy:                    awscdk.RemovalPolicy_RETAIN,
	})

	for _, ix := range schema.Indexes {
		t.AddGlobalSecondaryIndex(&awsdynamodb.GlobalSecondaryIndexProps{
			IndexName:        jsii.String(ix.Name),
			PartitionKey:     key(ix.PK),
			SortKey:          key(ix.SK),
			ProjectionType:   awsdynamodb.ProjectionType_INCLUDE,
			NonKeyAttributes: jsii.Strings(ix.Include...),
		})
	}
	return t
}

// newBucket makes a bucket that nothing public can reach. CloudFormation chooses its name.
func newBucket(scope constructs.Construct, id string, s Settings, versions bool,
	rules *[]*awss3.LifecycleRule) awss3.Bucket {
	return awss3.NewBucket(scope, jsii.String(id), &awss3.BucketProps{
		Versioned:         jsii.Bool(versions),
		Encryption:        awss3.BucketEncryption_S3_MANAGED,
		EnforceSSL:        s.tlsOnly(),
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		RemovalPolicy:     awscdk.RemovalPolicy_RETAIN,
		LifecycleRules:    rules,
	})
}

// share lets scripts of web pages send files to the work bucket, by the requests that the API has signed for them. The
// console is one of these pages. Its gateway is made after the bucket, so its origin is named by a pattern: what
// matters is the signature of the request, which only the console's own page is given. On the emulators, it and the
// buckets have one origin.
func (d *Data) share(s Settings) {
	may := upload.Sharing(s.Origins)
	from := jsii.Strings(may.Origins...)
	if !s.Local {
		console := append(*from, awscdk.Fn_Sub(jsii.String(
			"https://*.execute-api.${AWS::Region}.${AWS::URLSuffix}"), nil))
		from = &console
	}
	if len(*from) == 0 {
		return
	}

	age, _ := strconv.Atoi(cors.MaxAge)
	d.Work.AddCorsRule(&awss3.CorsRule{
		Id:             jsii.String("uploads-of-pages"),
		AllowedOrigins: from,
		AllowedMethods: &[]awss3.HttpMethods{awss3.HttpMethods_PUT},
		AllowedHeaders: jsii.Strings(may.Headers...),
		ExposedHeaders: jsii.Strings(may.Exposed...),
		MaxAge:         jsii.Number(age),
	})
}

// neverDeleteVersions denies everybody to delete versions of objects, so that what a role
// deletes can be restored. An administrator of the account can still change the policy first.
func neverDeleteVersions(b awss3.Bucket) awsiam.PolicyStatement {
	return awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid:        jsii.String("NeverDeleteVersions"),
		Effect:     awsiam.Effect_DENY,
		Principals: &[]awsiam.IPrincipal{awsiam.NewAnyPrincipal()},
		Actions:    jsii.Strings("s3:DeleteObjectVersion"),
		Resources:  &[]*string{b.ArnForObjects(jsii.String("*"))},
	})
}
