package erc

import (
	"fmt"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		read func(string) (Kernel, error)
		text string
		want string
	}{
		"ERC":        {erc, "erc:\nwho: Lovelace, Ada\nwhat: Notes\n upon the memoir\nwhen: 1843\nwhere: ark:/99999/x\nwhere: local\nwhere: local\n", "{[Lovelace, Ada] [Notes\nupon the memoir] [1843] [ark:/99999/x local]}"},
		"short form": {erc, "erc: Lovelace | Notes | 1843 | ark:/99999/x\n", "{[Lovelace] [Notes] [1843] [ark:/99999/x]}"},
		"coded":      {erc, "who: (:unas)\nwhat: (:unkn)\nwhen: (:null)\nwhere: (:unav) something\n", "{[] [] [] [(:unav) something]}"},
		"DC": {dc, `<dc xmlns="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:d="http://purl.org/dc/elements/1.1/"><d:creator>A</d:creator><d:creator>B</d:creator><d:title>T &amp; U</d:title><d:date>2026</d:date><other>x</other></dc>`,
			"{[A B] [T & U] [2026] []}"},
		"DataCite": {datacite, `<resource xmlns="http://datacite.org/schema/kernel-4"><creators><creator><creatorName>A</creatorName></creator></creators><titles><title>T</title></titles><publicationYear>2026</publicationYear></resource>`,
			"{[A] [T] [2026] []}"},
	} {
		k, err := c.read(c.text)
		if got := fmt.Sprint(k); err != nil || got != c.want {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, c.want)
		}
	}
	for _, bad := range []string{"<dc", "<dc>&unknown;</dc>", `<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>`} {
		if k, err := dc(bad); err == nil {
			t.Errorf("%s was read as %v", bad, k)
		}
	}
}

func erc(s string) (Kernel, error)      { return ReadERC(strings.NewReader(s)) }
func dc(s string) (Kernel, error)       { return ReadDC(strings.NewReader(s)) }
func datacite(s string) (Kernel, error) { return ReadDataCite(strings.NewReader(s)) }

func TestOr(t *testing.T) {
	k := Kernel{Who: []string{"a"}}.Or(Kernel{Who: []string{"b"}, What: []string{"c"}})
	if fmt.Sprint(k) != "{[a] [c] [] []}" {
		t.Error(k)
	}
}
