package console

import v1 "archivist/pkg/api/v1"

// settings is the page of the settings that the deployment runs with.
type settings struct {
	v1.Settings
	Groups []settingGroup
}

// settingGroup are the settings of one thing, in their order.
type settingGroup struct {
	Name  string
	Items []v1.Setting
}

// showSettings shows the release and all settings. They are changed by a deployment only.
func (c *Console) showSettings(v *visit) (view, error) {
	all, err := v.api.Settings(v.Context())
	s := settings{Settings: all}
	for _, one := range all.Items {
		last := len(s.Groups) - 1
		if last < 0 || s.Groups[last].Name != one.Group {
			s.Groups = append(s.Groups, settingGroup{Name: one.Group})
			last++
		}
		s.Groups[last].Items = append(s.Groups[last].Items, one)
	}
	return view{Title: "Settings of the deployment", Body: s, Still: true,
		Command: "archivist settings"}, err
}
