package inprocess

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	v1 "archivist/pkg/api/v1"
)

// TestResearch: in a bubble, an episode from the curators' queue and a clip from the API become a work item. A
// researcher with a token for this project only gets it and reports, and the pair is researched.
func TestResearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := Settings{Projects: []string{"jingles"}}
		tokens := demanding(t, &settings, map[string]string{"ann": "administrator", "bench": "researcher:jingles"})
		w := begin(t, settings)
		if _, err := w.api.Queue(t.Context()); err == nil {
			t.Error("a call without a token is answered")
		}
		w.api = w.with(tokens["ann"])
		researcher := w.with(tokens["bench"])
		_, err := w.api.ApplyResearch(t.Context(), v1.ResearchDefinition{Name: "jingles",
			Analysis: v1.ResearchAnalysis{Name: "correlation", Version: "1"}}, "a test")
		w.must(err)
		_, err = sqs.NewFromConfig(w.Config()).SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: aws.String(w.Outputs()["curatedEpisodesQueue"]), MessageBody: aws.String(fmt.Sprintf(
				`{"project":"jingles","kind":"episode","source":"radio","id":"one","url":%q,"curated":"1999-12-31T10:00:00Z"}`,
				sourceURL+"/one.wav"))})
		w.must(err)
		_, err = w.api.Curate(t.Context(), "jingles", v1.Clips, []v1.ResearchRecord{{Source: "radio", ID: "clip",
			URL: sourceURL + "/clip.wav"}})
		w.must(err)
		_, err = researcher.Hello(t.Context(), "jingles", v1.ResearchHello{Researcher: "bench", Capacity: 1})
		w.must(err)
		var work *v1.ResearchWork
		w.until("a work item is there", func() bool {
			work, err = researcher.NextWork(t.Context(), "jingles", v1.ResearchNext{Researcher: "bench",
				Token: "first"})
			w.must(err)
			return work != nil
		})
		w.must(researcher.ReportWork(t.Context(), "jingles", v1.ResearchReport{Project: "jingles", Lease: work.Lease.ID,
			Researcher: "bench", Analysis: "correlation@1", Episode: work.Episode.Key, Clip: work.Clips[0].Key,
			Sequence: 1, Final: true, Count: 1}))
		w.until("the pair is researched", func() bool {
			is, err := w.api.ResearchStatus(t.Context(), "jingles")
			w.must(err)
			return is.Coverage.Researched == 1
		})
	})
}
