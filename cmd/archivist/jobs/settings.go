package jobs

import (
	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// SettingsCmd shows the settings that the deployment runs with. They are changed by a deployment, not here.
type SettingsCmd struct{}

// Prints is an empty value of what it prints.
func (SettingsCmd) Prints() any { return v1.Settings{} }

// Run shows the release, and then all settings as a table.
func (SettingsCmd) Run(a *command.App) error {
	return command.Show(a, showSettings)(a.Client.Settings(a.Ctx))
}

func showSettings(p terminal.Page, s v1.Settings) {
	if p.ForPeople() {
		p.Fields("release", s.Version, "commit", s.Revision, "built with", s.Go)
	}
	terminal.Table(p, s.Items, settingColumns...)
}

var settingColumns = []terminal.Column[v1.Setting]{
	{Title: "of", Text: func(s v1.Setting) string { return s.Group }},
	{Title: "setting", Text: func(s v1.Setting) string { return s.Name }},
	{Title: "value", Text: settingText, Raw: func(s v1.Setting) string { return s.Value }, Share: 1},
	{Title: "what it is", Text: func(s v1.Setting) string { return s.Says }, Share: 1},
}

// settingText is the value with its unit, or why there is none.
func settingText(s v1.Setting) string {
	switch {
	case s.Unknown:
		return "not known to the API"
	case s.Value == "":
		return "not set"
	case s.Unit != "":
		return s.Value + " " + s.Unit
	}
	return s.Value
}
