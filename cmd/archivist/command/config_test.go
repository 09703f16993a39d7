package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSettings: flags go before the environment, that before the config file, and that
// before the folder of make run; a profile's token goes to the profile's API only.
func TestSettings(t *testing.T) {
	home := t.TempDir()
	t.Chdir(home)
	file := filepath.Join(home, "xdg", "archivist", "config.yaml")
	write(t, file, "default: live\nprofiles:\n  live: {api: https://live, token: k-live}\n"+
		"  test: {api: https://test, token: k-test}\n  open: {api: https://open}\n")
	write(t, filepath.Join(home, outputsFile), `{"APIURL":"http://local"}`)
	below := filepath.Join(home, "docs")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	const xdg, api, key, named = "XDG_CONFIG_HOME", "ARCHIVIST_API", "ARCHIVIST_TOKEN", "ARCHIVIST_PROFILE"
	with := map[string]string{xdg: filepath.Join(home, "xdg")}
	full := map[string]string{xdg: with[xdg], api: "https://env", key: "k-env"}
	for _, k := range []struct {
		env   map[string]string
		flags Flags
		api   string
		key   string
	}{
		{nil, Flags{}, "http://local", ""},
		{map[string]string{key: "k-env"}, Flags{}, "http://local", "k-env"},
		{with, Flags{}, "https://live", "k-live"},
		{map[string]string{xdg: with[xdg], key: "k-env"}, Flags{}, "https://live", "k-env"},
		{map[string]string{xdg: with[xdg], named: "test"}, Flags{}, "https://test", "k-test"},
		{map[string]string{xdg: with[xdg], api: "https://env"}, Flags{}, "https://env", ""},
		{full, Flags{}, "https://env", "k-env"},
		{full, Flags{Profile: "test"}, "https://test", "k-test"},
		{full, Flags{Profile: "open"}, "https://open", "k-env"},
		{with, Flags{API: "https://flag"}, "https://flag", ""},
		{with, Flags{API: "https://flag", Profile: "test"}, "https://flag", ""},
	} {
		s, err := settle(&k.flags, Machine{Getenv: func(name string) string { return k.env[name] }})
		if err != nil || s.API != k.api || s.token != k.key || (s.TokenFrom != "") != (k.key != "") {
			t.Errorf("%v %+v: %q with the token %q, %v", k.env, k.flags, s.API, s.token, err)
		}
	}
	for content, says := range map[string]string{
		"profiles: [": "is not a valid config file", "profile: x": "unknown field",
		"profiles: {a: {api: https://a, token: [SECRET]}}": "is not a valid config file",
		"default: gone": `there is no profile "gone"`,
	} {
		write(t, file, content)
		_, err := settle(&Flags{}, Machine{Getenv: func(name string) string { return with[name] }})
		if err == nil || exitCode(err) != ExitUsage || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), "SECRET") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", content, err)
		}
	}
}

// TestKeysHaveEnded: who still gives a key is told what to do, and no request is made with it.
func TestKeysHaveEnded(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "archivist", "config.yaml"), "profiles: {live: {api: https://live, key: SECRET}}")
	for _, k := range []struct {
		flags   Flags
		env     string
		refused bool
		says    string
	}{
		{Flags{API: "https://a", APIKey: "SECRET"}, "", true, "--api-key: keys of the API have ended"},
		{Flags{API: "https://a"}, "SECRET", false, "ARCHIVIST_API_KEY is not used any more"},
		{Flags{Profile: "live"}, "", false, "the key of the profile live is not used any more"},
		{Flags{API: "https://a"}, "", false, ""},
	} {
		env := map[string]string{"XDG_CONFIG_HOME": dir, "ARCHIVIST_API_KEY": k.env}
		s, err := settle(&k.flags, Machine{Getenv: func(name string) string { return env[name] }})
		text := strings.Join(s.warnings, "")
		if err != nil {
			text += err.Error()
		}
		if (err != nil) != k.refused || !strings.Contains(text, k.says) || k.says == "" && text != "" ||
			k.says != "" && !strings.Contains(text, "archivist login") || strings.Contains(text, "SECRET") {
			t.Errorf("%+v: %q", k, text)
		}
	}
}

// write writes a file that is only the user's, with its folders.
func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestToken: a profile's token goes to the profile's API only, and no token is printed.
func TestToken(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "archivist", "config.yaml")
	write(t, file, "profiles: {live: {api: https://live, token: t-live}, open: {api: https://open}}")
	for _, k := range []struct {
		profile, api, env string
		flags             Flags
		token             string
	}{
		{"", "https://env", "", Flags{}, ""},
		{"", "https://env", "t-env", Flags{}, "t-env"},
		{"live", "", "", Flags{}, "t-live"},
		{"live", "", "t-env", Flags{}, "t-env"},
		{"", "", "t-env", Flags{Profile: "live"}, "t-live"},
		{"", "", "t-env", Flags{Profile: "open"}, "t-env"},
		{"live", "", "", Flags{API: "https://flag"}, ""},
		{"live", "https://env", "", Flags{}, ""},
	} {
		env := map[string]string{"XDG_CONFIG_HOME": dir, "ARCHIVIST_API": k.api,
			"ARCHIVIST_PROFILE": k.profile, "ARCHIVIST_TOKEN": k.env}
		s, err := settle(&k.flags, Machine{Getenv: func(name string) string { return env[name] }})
		printed, _ := json.Marshal(s)
		if err != nil || s.token != k.token || (s.TokenFrom != "") != (k.token != "") ||
			strings.Contains(string(printed), "t-") {
			t.Errorf("%+v: %q, %s, %v", k, s.token, printed, err)
		}
	}
}
