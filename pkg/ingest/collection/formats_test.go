package collection

import (
	"strings"
	"testing"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/formats"
)

// TestFormats: what is done with files of formats, by their ids, their media types and kinds of these.
func TestFormats(t *testing.T) {
	tiff := formats.Match{ID: "fmt/353", Name: "Tagged Image File Format", MediaType: "image/tiff"}
	exe := formats.Match{ID: "fmt/899", Name: "Windows Portable Executable", Version: "32 bit",
		MediaType: "application/vnd.microsoft.portable-executable"}
	unknown := formats.Match{ID: formats.Unknown}
	strict := &Formats{Accept: []string{"image/*", "fmt/899"}, Warn: []string{formats.Unknown}, Others: Refused}
	for _, c := range []struct {
		policy *Formats
		of     []formats.Match
		want   Verdict
		says   string
	}{
		{nil, []formats.Match{exe}, Accepted, ""},
		{&Formats{}, []formats.Match{exe}, Accepted, ""},
		{strict, []formats.Match{tiff}, Accepted, "accepts"},
		{strict, []formats.Match{unknown}, Warned, "not known (UNKNOWN), which the collection does not recommend"},
		{strict, []formats.Match{{ID: "fmt/1", MediaType: "audio/x-wav"}}, Refused, "(fmt/1), which the collection "},
		{strict, nil, Warned, "not known"},
		{&Formats{Others: Refused}, nil, Refused, "not known"},
		{&Formats{Refuse: []string{"fmt/899"}, Accept: []string{"image/tiff"}}, []formats.Match{tiff, exe}, Refused,
			"its format is Windows Portable Executable 32 bit (fmt/899), which the collection refuses"},
		{&Formats{Others: Warned, Accept: []string{"image/tiff"}}, []formats.Match{exe, tiff}, Accepted, ""},
		{&Formats{Others: Warned, Accept: []string{"image/tif"}}, []formats.Match{tiff}, Warned, ""},
	} {
		if got, why := c.policy.Judge(c.of); got != c.want || !strings.Contains(why, c.says) {
			t.Errorf("%+v of %+v: %s, %q", c.of, c.policy, got, why)
		}
	}

	for _, c := range []struct {
		policy *Formats
		wrong  string
	}{
		{strict, ""}, {nil, ""}, {&Formats{Refuse: []string{"x-fmt/411"}}, ""},
		{&Formats{Refuse: []string{".exe"}}, "formats.refuse"}, {&Formats{Warn: []string{"*/*"}}, "formats.warn"},
		{&Formats{Others: "keep"}, "formats.others"}, {&Formats{Accept: make([]string, 201)}, "201 entries"},
	} {
		err := c.policy.check()
		if c.wrong == "" && err != nil || c.wrong != "" && (!fault.Is(err, fault.Invalid) ||
			!strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%+v: %v", c.policy, err)
		}
	}
}
