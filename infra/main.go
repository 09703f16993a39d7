// Command infra is the CDK app: a data stack with what must never be lost, and
// an app stack with what can be made again.
package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/ingest"
)

// Settings are the deployment's choices, from the CDK context (-c name=value).
type Settings struct {
	Local       bool   // for an emulator: host architecture, loopback sources, no deletion protection
	Timing      string // name of the chain of times
	MaxInFlight int    // running jobs at once
	NAAN        string // of minted arks; 99999 is for tests only
	Shoulder    string
	Faults      string // local only: file with the faults of a test
	MailFrom    string // sender of reports; the address must be verified with SES; "" = no mail
	AlarmMail   string // who is told of alarms, or ""
}

// read takes the settings out of the context; what is not given has a default.
func read(app awscdk.App) Settings {
	text := func(name, or string) string {
		if v, ok := app.Node().TryGetContext(jsii.String(name)).(string); ok && v != "" {
			return v
		}
		return or
	}
	s := Settings{Local: text("local", "") == "true", Timing: text("timing", "production"), NAAN: text("naan", "99999"), Shoulder: text("shoulder", "fk4"),
		Faults: text("faults", ""), AlarmMail: text("alarmMail", ""), MailFrom: text("mailFrom", "")}
	if _, err := fmt.Sscan(text("maxInFlight", "100"), &s.MaxInFlight); err != nil || s.MaxInFlight < 1 {
		panic("maxInFlight: expected a number of jobs, e.g. -c maxInFlight=100")
	}
	if _, ok := ingest.Timings[s.Timing]; !ok {
		panic("timing: expected production or quick")
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
