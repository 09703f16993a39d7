package jobs

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"archivist/cmd/archivist/command"
	"archivist/cmd/archivist/command/commandtest"
	v1 "archivist/pkg/api/v1"
)

// acts is an archive that records the actions that it is asked for, and refuses those without a
// confirmation.
type acts struct {
	path, key, user string
	in              v1.Action
}

func (s *acts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.path, s.key, s.user, s.in = r.URL.Path, r.Header.Get("Idempotency-Key"), r.Header.Get(v1.UserHeader), v1.Action{}
	_ = json.NewDecoder(r.Body).Decode(&s.in)
	if s.in.Action == "delete" && !s.in.Confirm {
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(v1.Problem{Type: "urn:archivist:problem:unconfirmed", Status: 409,
			Detail: "the depositor is not notified; to do it nevertheless, repeat the request with confirm"})
		return
	}
	_ = json.NewEncoder(w).Encode(v1.ActionResult{ActionOutcome: v1.ActionOutcome{Action: s.in.Action, Target: "queue",
		Summary: "done", DryRun: s.in.DryRun}})
}

func actingOn(t *testing.T) (*acts, *commandtest.Console) {
	s := &acts{}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return s, with(t, srv.URL)
}

// TestActionsAsk: each command asks for its action, with the flags that it has.
func TestActionsAsk(t *testing.T) {
	s, c := actingOn(t)
	one := 1
	for line, want := range map[string]struct {
		path string
		in   v1.Action
	}{
		"job hold B-00001 --until 2h": {"jobs/B-00001", v1.Action{Action: "hold", Until: "2026-11-22T08:00:00Z"}},
		"job release B-00001":         {"jobs/B-00001", v1.Action{Action: "release"}},
		"job requeue B-00001 --dry-run --confirm": {"jobs/B-00001",
			v1.Action{Action: "requeue", DryRun: true, Confirm: true}},
		"job fail B-00001":                    {"jobs/B-00001", v1.Action{Action: "fail"}},
		"job delete B-00001 --confirm":        {"jobs/B-00001", v1.Action{Action: "delete", Confirm: true}},
		"job prioritize B-00001 --priority 1": {"jobs/B-00001", v1.Action{Action: "prioritize", Priority: &one}},
		"job clean-up B-00001":                {"jobs/B-00001", v1.Action{Action: "clean-up"}},
		"batch hold B --until 3d":             {"batches/B", v1.Action{Action: "hold", Until: "2026-11-25T06:00:00Z"}},
		"batch cancel B":                      {"batches/B", v1.Action{Action: "cancel"}},
		"batch update-report B":               {"batches/B", v1.Action{Action: "update-report"}},
		"collection hold maps --until 2026-12-01": {"collections/maps",
			v1.Action{Action: "hold", Until: "2026-12-01T00:00:00Z"}},
		"collection release maps": {"collections/maps", v1.Action{Action: "release"}},
		"queue pause --until 2026-11-22T09:00:00+02:00": {"queue",
			v1.Action{Action: "pause", Until: "2026-11-22T07:00:00Z"}},
		"queue resume-storage": {"storage", v1.Action{Action: "resume"}},
	} {
		c.Want(t, line+" --reason x", 0, "done")
		want.in.Reason = "x"
		if s.path != "/v1/"+want.path+"/actions" || !reflect.DeepEqual(s.in, want.in) || s.key == "" {
			t.Errorf("%s: %s %+v with the key %q", line, s.path, s.in, s.key)
		}
	}
	c.Want(t, "queue resume --reason x --idempotency-key mine", 0, "done")
	if s.key != "mine" || s.user != "" {
		t.Errorf("the key is %q, the user %q", s.key, s.user)
	}
	for name, want := range map[string]string{"ann": "ann", "Ann B": "", "änn": "", strings.Repeat("a", 101): ""} {
		c.Env["USER"] = name
		c.Want(t, "queue resume --reason x", 0, "done")
		if s.user != want {
			t.Errorf("the user %q was sent as %q", name, s.user)
		}
	}
}

// TestConfirmingCommand: the refusal of an action that needs a confirmation has the command
// that confirms it, as a shell needs it; a dry run, the command that
// does it.
func TestConfirmingCommand(t *testing.T) {
	_, c := actingOn(t)
	code := c.Args("job", "delete", "B-00001", "--reason", "it's wrong")
	const want = `the depositor is not notified; to do it nevertheless, run: ` +
		`archivist job delete B-00001 --reason 'it'\''s wrong' --confirm` + "\n"
	if code != 4 || c.Err.String() != "archivist: "+want {
		t.Errorf("%d %s", code, &c.Err)
	}
	c.Width, c.Env["NO_COLOR"] = 40, "1"
	c.Want(t, "queue pause --reason x --dry-run --until 2h", 0,
		"to do it:\n  archivist queue pause --reason x --until 2h\n")
}

// TestMoments: a time that is not one is refused before any request, with the forms that are
// accepted.
func TestMoments(t *testing.T) {
	for _, text := range []string{"tomorrow", "-2h", "0h", "2", "5y", "2026-13-01"} {
		c := with(t, "http://127.0.0.1:1")
		c.Want(
			t,
			"queue pause --reason x --until="+text,
			command.ExitUsage,
			`--until: found "`+text+`"; expected a time in ISO 8601`,
		)
	}
}
