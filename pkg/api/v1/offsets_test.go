package v1

import (
	"encoding/csv"
	"strings"
	"testing"
)

// TestWriteOffsets: each format has its offsets in order, and escapes what titles may have.
func TestWriteOffsets(t *testing.T) {
	all := []ResearchOffset{
		{Episode: "e", Clip: "late", Title: "=1+1", ResearchHit: ResearchHit{Offset: 362_439_000_000_001,
			Length: 5, Score: 1}, At: "2026-11-22T09:41:10Z"},
		{Episode: "e", Clip: "early", Title: "a \"b\", <c> & --> d", ResearchHit: ResearchHit{Offset: 1_500_000_000,
			Length: 2_250_000_000, Score: 0.5}},
		{Episode: "e", Clip: "untitled", ResearchHit: ResearchHit{Offset: 1_500_000_000, Length: 1, Score: 0.25}},
	}
	want := map[string]string{
		OffsetsCSV: `episode,clip,title,start_seconds,end_seconds,score,stored
e,late,'=1+1,362439.000000001,362439.000000006,1,2026-11-22T09:41:10Z
e,early,"a ""b"", <c> & --> d",1.500000000,3.750000000,0.5,
e,untitled,,1.500000000,1.500000001,0.25,
`,
		OffsetsWebVTT: `WEBVTT

00:00:01.500 --> 00:00:03.750
a "b", &lt;c&gt; &amp; --&gt; d

00:00:01.500 --> 00:00:01.501
untitled

100:40:39.000 --> 100:40:39.001
=1+1
`,
		OffsetsAudacity: "1.500000000\t3.750000000\ta \"b\", <c> & --> d\n" +
			"1.500000000\t1.500000001\tuntitled\n" +
			"362439.000000001\t362439.000000006\t=1+1\n",
	}
	for format, text := range want {
		var got strings.Builder
		err := WriteOffsets(&got, format, true, all)
		if err != nil || got.String() != text {
			t.Errorf("%s: %v\n%s\nwant\n%s", format, err, got.String(), text)
		}
	}
	if WriteOffsets(&strings.Builder{}, "pdf", true, all) == nil {
		t.Error("an unknown format is accepted")
	}
	var second strings.Builder
	_ = WriteOffsets(&second, OffsetsCSV, false, all)
	rows, err := csv.NewReader(strings.NewReader(second.String())).ReadAll()
	if err != nil || len(rows) != 3 || rows[1][2] != all[1].Title {
		t.Errorf("%q, %v", rows, err)
	}
}
