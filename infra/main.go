// Command infra is the CDK app. It makes two stacks: ArchivistData with what must never be
// lost (the table and the buckets), and Archivist with what can be made again (queues,
// functions, state machines, the API, alarms).
//
// The settings of a deployment come from the context. They are checked before a template
// is written; what is permanent, such as the NAAN of minted ARKs, has no default:
//
//	make deploy CONTEXT='-c naan=… -c alarmMail=ops@example.org'
//
// Each function is granted exactly the calls that it makes (grants.go); the end-to-end
// tests compare both. Every time-out, visibility and retention follows from one chain of
// times (ingest.Times), which the tests assert on the templates.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

// build makes both stacks. An emulator gets no tags.
func build(app awscdk.App, s Settings) (*Data, *App) {
	data := NewData(app, "ArchivistData", s)
	if !s.Local {
		for _, name := range slices.Sorted(maps.Keys(s.Tags)) {
			awscdk.Tags_Of(app).Add(jsii.String(name), jsii.String(s.Tags[name]), nil)
		}
	}
	return data, NewApp(app, "Archivist", AppProps{Settings: s, Data: data})
}

// run writes the templates, and returns the exit code. What is wrong with the settings
// is the reader's to correct: it is reported without a stack trace.
func run() int {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	given, _ := app.Node().GetAllContext(nil).(map[string]any)
	s, err := read(given)
	if err != nil {
		lines := strings.ReplaceAll(err.Error(), "\n", "\n  ")
		fmt.Fprintf(os.Stderr, "The settings are not right; nothing was changed.\n  %s\n", lines)
		return 1
	}

	_, stack := build(app, s)
	stack.Stack.TemplateOptions().SetMetadata(&map[string]any{"ArchivistSettings": kept(given)})
	if err := checkEnvironments(app.Synth(nil)); err != nil {
		fmt.Fprintf(os.Stderr, "The settings are not right; nothing was changed.\n  %s\n", err)
		return 1
	}
	return 0
}

// kept are the settings that were given, as the template keeps them: so the next deployment is compared with this one
// (infra/deploy). Names of the CDK's own are none.
func kept(given map[string]any) map[string]string {
	settings := map[string]string{}
	for name, value := range given {
		if text, is := value.(string); is && text != "" && !strings.ContainsAny(name, "@:/") {
			settings[name] = text
		}
	}
	return settings
}

func main() { os.Exit(run()) }
