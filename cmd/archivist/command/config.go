package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"archivist/pkg/kernel/terminal"
)

// configFile is the content of the config file, in YAML. An unknown field is refused: a misspelt name would be
// ignored silently, and another deployment be used.
type configFile struct {
	Default  string             `yaml:"default"`  // name of the profile that is used if none is named
	Profiles map[string]profile `yaml:"profiles"` // by name
}

// profile is one deployment: the URL of its API, and the token, if it has one of its own. Key is of earlier releases.
type profile struct {
	API   string `yaml:"api"`
	Key   string `yaml:"key"`
	Token string `yaml:"token"`
}

// ended is what became of keys of the API.
const ended = "keys of the API have ended; sign in with archivist login, or set ARCHIVIST_TOKEN"

// settle finds the API and the token. A flag has precedence over the environment, the environment over the config
// file's default, and that over what `make run` or a demo started. The error is that of the config file, or of a
// profile that it does not have; no API at all is no error here.
func settle(c *Flags, m Machine) (settings, error) {
	s, config, err := readConfig(m)
	if err != nil {
		return s, err
	}

	// A profile that a flag names is before an API that the environment names: flags are first, whatever they
	// say.
	api, named := m.Getenv("ARCHIVIST_API"), m.Getenv("ARCHIVIST_PROFILE")
	switch {
	case c.API != "":
		s.API, s.From = c.API, "--api"
	case c.Profile != "":
		err = s.use(config, c.Profile)
	case api != "":
		s.API, s.From = api, "ARCHIVIST_API"
	case named != "":
		err = s.use(config, named)
	case config.Default != "":
		err = s.use(config, config.Default)
	default:
		s.started, s.From = localAPI()
		s.API = s.started.APIURL
	}

	of := config.Profiles[s.Profile]
	if err == nil {
		err = s.refuseKeys(c, m.Getenv("ARCHIVIST_API_KEY"), of.Key)
	}
	s.chooseToken(c, m.Getenv("ARCHIVIST_TOKEN"), of.Token)
	if err == nil && s.API != "" && !isURL(s.API) {
		err = Usage("%s: %q is not the URL of an API; expected http://HOST or https://HOST/STAGE", s.From, s.API)
	}
	return s, err
}

// refuseKeys says that a key of the API is not used: those of a flag are an error, others a warning.
func (s *settings) refuseKeys(c *Flags, env, ofProfile string) error {
	switch {
	case c.APIKey != "":
		return Usage("--api-key: %s", ended)
	case env != "":
		s.warnings = append(s.warnings, "ARCHIVIST_API_KEY is not used any more: "+ended)
	case ofProfile != "":
		s.warnings = append(s.warnings,
			fmt.Sprintf("the key of the profile %s is not used any more: %s", s.Profile, ended))
	}
	return nil
}

// isURL reports whether a text is a URL of which requests can be made.
func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

// use selects the API of a profile. An unknown name is an error, also if the environment names it: another
// deployment must not be used in its place.
func (s *settings) use(config configFile, name string) error {
	p, known := config.Profiles[name]
	if !known {
		return Usage("there is no profile %q in %s; it has %s", name, s.File,
			cmp.Or(strings.Join(s.Profiles, ", "), "none"))
	}
	s.API, s.From, s.Profile = p.API, "profile "+name, name
	return nil
}

// chooseToken finds the bearer token. That of a profile is sent to the API of this profile only: any other server could
// misuse it. It has precedence over that of the environment if the profile was named by a flag, because flags have
// precedence. No flag has it: others could see it among the processes.
func (s *settings) chooseToken(c *Flags, env, ofProfile string) {
	byFlag := c.Profile != "" && c.API == ""
	switch {
	case env != "" && !(byFlag && ofProfile != ""):
		s.token, s.TokenFrom = env, "ARCHIVIST_TOKEN"
	case ofProfile != "":
		s.token, s.TokenFrom = ofProfile, s.From
	}
}

// readConfig reads the config file, if there is one; a missing one is empty. It warns of a file with tokens that
// others than its owner can read, and goes on.
func readConfig(m Machine) (s settings, config configFile, err error) {
	s.File = configPath(m)
	data, err := os.ReadFile(s.File)
	if errors.Is(err, fs.ErrNotExist) || s.File == "" {
		return s, config, nil
	}

	if err != nil {
		return s, config, Usage("the config file cannot be read: %v", err)
	}

	if err := yaml.UnmarshalWithOptions(data, &config, yaml.Strict()); err != nil {
		return s, config, Usage("%s is not a valid config file: %s (archivist help config)", s.File,
			firstLine(err))
	}

	s.Profiles = slices.Sorted(maps.Keys(config.Profiles))
	secret := slices.ContainsFunc(s.Profiles,
		func(name string) bool { return config.Profiles[name].Key+config.Profiles[name].Token != "" })
	if secret && othersCanRead(s.File) {
		s.warnings = append(s.warnings,
			fmt.Sprintf("others can read the tokens in %s; run chmod 600 %s", s.File, s.File))
	}
	return s, config, nil
}

// othersCanRead reports whether users other than the owner have any right on a file, by its mode bits.
func othersCanRead(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().Perm()&0o077 != 0
}

// firstLine returns the first line of an error. YAML errors quote lines of the file after it, which may be
// secret.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// configPath is the path of the config file, "" if the environment has no home ("Basics" in the XDG Base
// Directory Specification).
func configPath(m Machine) string {
	dir := m.Getenv("XDG_CONFIG_HOME")
	if dir == "" && m.Getenv("HOME") != "" {
		dir = filepath.Join(m.Getenv("HOME"), ".config")
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "archivist", "config.yaml")
}

// outputsFile is the file in which `make run` and `archivist demo` describe what they started (package
// localstack), below the folder in which they were started.
const outputsFile = ".local/outputs.json"

// started is what that file says: the URL of the API, and the program as which commands act while nobody has signed in,
// if there is one.
type started struct{ APIURL, ClientID, ClientSecret string }

// localAPI is the API of what `make run` or a demo started in this folder or one above it, the nearest first,
// with the file that says so; both are empty if there is none. A file that cannot be read or has no URL is passed
// over: it may be that of another program.
func localAPI() (o started, from string) {
	dir, err := os.Getwd()
	for err == nil { // up to the root
		data, readErr := os.ReadFile(filepath.Join(dir, outputsFile))
		o = started{}
		if readErr == nil && json.Unmarshal(data, &o) == nil && o.APIURL != "" {
			return o, filepath.Join(dir, outputsFile)
		}
		above := filepath.Dir(dir)
		if above == dir {
			break
		}
		dir = above
	}
	return started{}, ""
}

// ConfigCmd helps if a command seems to use the wrong API: it prints the settings, and where each is from.
type ConfigCmd struct{}

// Offline marks it as a command that needs no API: it says so if none is set.
func (ConfigCmd) Offline() {}

// Prints is an empty value of what it prints; its fields are those of --json.
func (ConfigCmd) Prints() any { return settings{} }

// Run prints whether a token is set and its source, but not the token.
func (ConfigCmd) Run(a *App) error {
	return a.Print(a.settings, func(p terminal.Page) {
		s := a.settings
		if s.API == "" {
			p.Lines("", "No API is set: run in the folder of `make run` or `make demo`, or set ARCHIVIST_API.")
		}
		token := "none"
		if s.TokenFrom != "" {
			token = "set, from " + s.TokenFrom
		}
		p.Fields("api", s.API, "from", s.From, "token", token,
			"config file", s.File, "profiles", strings.Join(s.Profiles, ", "))
	})
}
