package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"archivist/pkg/terminal"
)

// settings say which API is used.
type settings struct {
	API      string   `json:"api"`
	From     string   `json:"from"`    // where API was found
	HasKey   bool     `json:"hasKey"`  // the key itself is never printed
	KeyFrom  string   `json:"keyFrom"` // where the key was found
	Profile  string   `json:"profile"`
	File     string   `json:"configFile"`
	Profiles []string `json:"profiles"`

	key      string
	warnings []string
}

// configFile is what the config file holds.
type configFile struct {
	Default  string             `yaml:"default"`  // name of the profile that is used if none is named
	Profiles map[string]profile `yaml:"profiles"` // by name
}

// profile is one deployment.
type profile struct {
	API string `yaml:"api"`
	Key string `yaml:"key"`
}

// settle finds the API: a flag goes before the environment, the environment before
// the config file's default, and that before a stack that `make run` left up. A key
// goes only to the API that it was given for.
func settle(c *cli, m machine) (settings, error) {
	s, config, err := readConfig(m)
	if err != nil {
		return s, err
	}
	named := config.Default
	if env := m.getenv("ARCHIVIST_PROFILE"); env != "" {
		named = env
	}
	if c.Profile != "" {
		named = c.Profile
	}
	chosen, known := config.Profiles[named]
	if named != "" && !known {
		return s, usage("there is no profile %q in %s; it has %s", named, s.File,
			cmp.Or(strings.Join(s.Profiles, ", "), "none"))
	}
	switch {
	case c.API != "":
		s.API, s.From = c.API, "--api"
	case c.Profile == "" && m.getenv("ARCHIVIST_API") != "":
		s.API, s.From = m.getenv("ARCHIVIST_API"), "ARCHIVIST_API"
	case known:
		s.API, s.From, s.Profile = chosen.API, "profile "+named, named
	default:
		s.API, s.From = localAPI()
	}
	s.chooseKey(c, m, chosen)
	return s, nil
}

// chooseKey finds the key: that of a profile only for the profile's API.
func (s *settings) chooseKey(c *cli, m machine, p profile) {
	env := m.getenv("ARCHIVIST_API_KEY")
	switch {
	case c.APIKey != "":
		s.key, s.KeyFrom = c.APIKey, "--api-key"
	case c.Profile != "" && s.Profile != "" && p.Key != "": // chosen by a flag
		s.key, s.KeyFrom = p.Key, s.From
	case env != "":
		s.key, s.KeyFrom = env, "ARCHIVIST_API_KEY"
	case s.Profile != "" && p.Key != "":
		s.key, s.KeyFrom = p.Key, s.From
	}
	s.HasKey = s.key != ""
}

// readConfig reads the config file, if there is one.
func readConfig(m machine) (s settings, config configFile, err error) {
	s.File = configPath(m)
	data, err := os.ReadFile(s.File)
	if errors.Is(err, fs.ErrNotExist) || s.File == "" {
		return s, config, nil
	}
	if err != nil {
		return s, config, usage("the config file cannot be read: %v", err)
	}
	if err := yaml.UnmarshalWithOptions(data, &config, yaml.Strict()); err != nil {
		return s, config, usage("%s is no config file: %s (archivist help config)", s.File, firstLine(err))
	}
	s.Profiles = slices.Sorted(maps.Keys(config.Profiles))
	hasKey := slices.ContainsFunc(s.Profiles, func(name string) bool { return config.Profiles[name].Key != "" })
	if info, err := os.Stat(s.File); err == nil && hasKey && info.Mode().Perm()&0o077 != 0 {
		s.warnings = append(s.warnings, fmt.Sprintf("others can read the keys in %s; run chmod 600 %s", s.File, s.File))
	}
	return s, config, nil
}

// firstLine is an error without the lines of the file that YAML errors quote, which
// may be secret.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// configPath is where the config file is looked for (XDG Base Directory Specification).
func configPath(m machine) string {
	dir := m.getenv("XDG_CONFIG_HOME")
	if dir == "" && m.getenv("HOME") != "" {
		dir = filepath.Join(m.getenv("HOME"), ".config")
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "archivist", "config.yaml")
}

// outputsFile is where `make run` says what it left up.
const outputsFile = ".local/outputs.json"

// localAPI is the API of the stack that `make run` left up in this folder or one
// above it, if any.
func localAPI() (url, from string) {
	dir, err := os.Getwd()
	for err == nil {
		data, readErr := os.ReadFile(filepath.Join(dir, outputsFile))
		var o struct{ APIURL string }
		if readErr == nil && json.Unmarshal(data, &o) == nil && o.APIURL != "" {
			return o.APIURL, filepath.Join(dir, outputsFile)
		}
		above := filepath.Dir(dir)
		if above == dir {
			break
		}
		dir = above
	}
	return "", ""
}

type configCmd struct{}

func (configCmd) offline()    {}
func (configCmd) prints() any { return settings{} }

func (configCmd) Run(a *app) error {
	return a.print(a.settings, func(p terminal.Page) {
		s := a.settings
		if s.API == "" {
			p.Lines("", "No API is set: run in the folder of `make run`, or set ARCHIVIST_API.")
		}
		key := "none"
		if s.HasKey {
			key = "set, from " + s.KeyFrom
		}
		p.Fields("api", s.API, "from", s.From, "key", key,
			"config file", s.File, "profiles", strings.Join(s.Profiles, ", "))
	})
}
