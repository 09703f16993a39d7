package boot

import (
	"slices"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/access"
)

// TestAgingKeepsOrder: waiting jobs are sorted as text by a time of 13 digits. The slowest
// aging that is accepted keeps the worst priority within them, until 2100 and longer.
func TestAgingKeepsOrder(t *testing.T) {
	l := DefaultLimits
	l.AgingMinutes = mostAging
	rules := l.rules(ingest.Timings["production"])
	j := rules.New(ingest.Job{ID: "x", Priority: ingest.WorstPriority}, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	_, rank := j.WorkKey()
	if l.Check() != nil || len(rank) != len("0000000000000#x") {
		t.Errorf("%v: the rank is %s", l.Check(), rank)
	}
	l.AgingMinutes++
	if l.Check() == nil {
		t.Error("a slower aging was accepted")
	}
}

func TestLocalOnly(t *testing.T) {
	for _, endpoint := range []string{"", "http://127.0.0.1:4566"} {
		env := Env(func(n string) string {
			return map[string]string{EnvAllow: "127.0.0.0/8,::1/128", "AWS_ENDPOINT_URL": endpoint}[n]
		})
		if g, err := allowed(env); (err == nil) != (endpoint != "") || len(g.Allow) != 2*min(1, len(endpoint)) {
			t.Errorf("private networks at the endpoint %q: %v, %v", endpoint, g, err)
		}
	}
	if g, err := allowed(func(string) string { return "" }); err != nil || len(g.Allow) > 0 {
		t.Errorf("%v, %v", g, err)
	}
}

// TestKeys: the API on AWS has keys, each with a role; a local stack may have none.
func TestKeys(t *testing.T) {
	for text, want := range map[string]int{"administrator=a+c,researcher:jingles=b": 3, "administrator=a": 1,
		"viewer=a": 1, "depositor:Maps.1=a": 1, "viewers=a": -1, "administrator": -1,
		"administrator=": -1, "administrator=a+": -1, "=a": -1, "": 0, ",": 0} {
		for _, endpoint := range []string{"", "http://127.0.0.1:4566"} {
			got, err := readKeys(func(n string) string {
				return map[string]string{EnvKeys: text, "AWS_ENDPOINT_URL": endpoint}[n]
			})
			fails := want < 0 || want == 0 && endpoint == ""
			if (err != nil) != fails || !fails && (len(got) != want || (got == nil) != (want == 0)) {
				t.Errorf("%q at the endpoint %q: %v, %v", text, endpoint, got, err)
			}
		}
	}
	got, err := readKeys(func(string) string {
		return "administrator=a/ann+c/of the deployment,researcher:jingles=b/bench-3"
	})
	if err != nil || got["b"].Name != "bench-3" || !slices.Equal(got["b"].Grants, []access.Grant{{
		Role: access.Researcher, Of: "jingles"}}) || got["a"].Name != "ann" ||
		got["c"].Name != "of the deployment" ||
		!got["a"].Is(access.Administrator) || got["a"].Subject != "" {
		t.Errorf("%v, %v", got, err)
	}
}

// TestIssuer: an issuer has an audience, and a deployment with one needs no keys.
func TestIssuer(t *testing.T) {
	for _, c := range []struct {
		issuer, audience string
		good             bool
	}{{"", "", true}, {"https://login.example.org", "a,b", true}, {"https://login.example.org", "",
		false},
		{"http://login.example.org", "a", false}} {
		env := func(n string) string {
			return map[string]string{EnvIssuer: c.issuer, EnvAudience: c.audience,
				EnvClaim: "groups,scope"}[n]
		}
		v, err := readIssuer(env, nil, time.Now)
		if (err == nil) != c.good || (v != nil) != (c.good && c.issuer != "") {
			t.Errorf("%+v: %v, %v", c, v, err)
		}
		if v != nil && (!slices.Equal(v.Audiences, []string{"a", "b"}) || !slices.Equal(v.Claims,
			[]string{"groups", "scope"}) || v.Issuer != c.issuer || v.Keys.Issuer != c.issuer ||
			v.Keys.HTTP == nil) {
			t.Errorf("%+v", v)
		}
		if _, err := readKeys(env); (err == nil) != (c.issuer != "") {
			t.Errorf("%+v without keys: %v", c, err)
		}
	}
}

// TestIDs: ids that many make at once are different.
func TestIDs(t *testing.T) {
	const makers, each = 8, 1000
	made := make(chan []string, makers)
	for range makers {
		go func() {
			var own []string
			for range each {
				own = append(own, newID())
			}
			made <- own
		}()
	}
	seen := map[string]bool{}
	for range makers {
		for _, id := range <-made {
			if seen[id] || len(id) != 26 {
				t.Fatalf("%s came twice, or is no ULID", id)
			}
			seen[id] = true
		}
	}
}
