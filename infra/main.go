// Command infra is the CDK app: a data stack with what must never be lost, and
// an app stack with what can be made again.
package main

import (
	"fmt"
	"regexp"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/boot"
	"archivist/pkg/ingest"
)

// Settings are the deployment's choices, from the CDK context (-c name=value).
type Settings struct {
	Local     bool   // for an emulator: host architecture, loopback sources, no deletion protection
	Timing    string // name of the chain of times
	Limits    boot.Limits
	NAAN      string // of minted arks; 99999 is for tests only
	Shoulder  string
	Faults    string // local only: file with the faults of a test
	MailFrom  string // sender of reports; the address must be verified with SES; "" = no mail
	AlarmMail string // who is told of alarms, or ""
	Table     string // a restored table to work on; "" = that of the data stack

	LogRoleExists bool // the account has a role for the logs of its APIs
}

// tableName is what DynamoDB takes as one (API reference, "CreateTable").
var tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

// tlsOnly says whether a resource's policy refuses what does not come by TLS. An
// emulator that evaluates policies is called without, and would refuse everything.
func (s Settings) tlsOnly() *bool { return jsii.Bool(!s.Local) }

// read takes the settings out of the context; what is not given has a default.
func read(app awscdk.App) Settings {
	text := func(name, or string) string {
		if v, ok := app.Node().TryGetContext(jsii.String(name)).(string); ok && v != "" {
			return v
		}
		return or
	}
	s := Settings{Local: text("local", "") == "true", Timing: text("timing", "production"), NAAN: text("naan", "99999"), Shoulder: text("shoulder", "fk4"),
		Faults: text("faults", ""), AlarmMail: text("alarmMail", ""), MailFrom: text("mailFrom", ""), Table: text("table", ""),
		LogRoleExists: text("apiGatewayLogRole", "") == "existing"}
	if s.Table != "" && !tableName.MatchString(s.Table) {
		panic("table: expected the name of a table, e.g. -c table=archivist-restored")
	}
	s.Limits = boot.DefaultLimits
	for name, to := range s.Limits.Named() {
		given := text(name, fmt.Sprint(*to))
		if _, err := fmt.Sscan(given, to); err != nil || *to < 0 {
			panic(fmt.Sprintf("%s: found %q; expected a whole number, e.g. -c %s=%d", name, given, name, *boot.DefaultLimits.Named()[name]))
		}
	}
	if s.Limits.MaxInFlight == 0 {
		panic("maxInFlight: expected 1 or more jobs")
	}
	if _, ok := ingest.Timings[s.Timing]; !ok {
		panic("timing: expected production, quick or measured")
	}
	return s
}

// build makes both stacks.
func build(app awscdk.App, s Settings) (*Data, *App) {
	data := NewData(app, "ArchivistData", s)
	return data, NewApp(app, "Archivist", AppProps{Settings: s, Data: data})
}

func main() {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	build(app, read(app))
	app.Synth(nil)
}
