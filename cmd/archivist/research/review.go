package research

import (
	"strconv"
	"strings"
	"time"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// researchReviewsCmd lists pairs with places that wait for a person.
type researchReviewsCmd struct {
	projectName
	command.Limit
}

func (researchReviewsCmd) Prints() any { return v1.ResearchUnreviewed{} }

// Run lists them by episode and clip, with the places of each.
func (c *researchReviewsCmd) Run(a *command.App) error {
	list, err := a.Client.ResearchReviews(a.Ctx, c.Project, c.More())
	if err != nil {
		return err
	}
	list = command.Limited(a, c.Limit, list)
	return a.Print(list, func(p terminal.Page) {
		for _, u := range list {
			p.Fields("episode", u.Episode, "clip", u.Clip, "lease", u.Lease, "researcher",
				u.Researcher,
				"since", command.Minute(u.Since), "damage", u.Damage)
			terminal.Table(p, placesOf(u.ResearchResult), placeColumns...)
		}
	})
}

// place is one of a result, with its number.
type place struct {
	v1.ResearchHit
	number int
	review string
}

// placesOf are the places of a result.
func placesOf(r v1.ResearchResult) (all []place) {
	for i, h := range r.Hits {
		one := place{ResearchHit: h, number: i + 1}
		if i < len(r.Reviews) {
			one.review = r.Reviews[i]
		}
		all = append(all, one)
	}
	return all
}

// placeColumns show where each place is, and the number by which a person names it.
var placeColumns = []terminal.Column[place]{
	{Title: "hit", Text: func(p place) string { return strconv.Itoa(p.number) }},
	{Title: "at", Text: func(p place) string { return time.Duration(p.Offset).Round(time.Millisecond).String() }},
	{Title: "score", Text: func(p place) string {
		return strconv.FormatFloat(p.Score, 'f', 2,
			64)
	}},
	{Title: "decision", Text: func(p place) string { return p.review }},
}

// researchReviewCmd accepts or rejects places of a pair.
type researchReviewCmd struct {
	projectName
	Episode string `arg:"" help:"Key of an episode."`
	Clip    string `arg:"" help:"Key of a clip."`
	Accept  bool   `xor:"how" required:"" help:"They are exported."`
	Reject  bool   `xor:"how" required:"" help:"They are not exported."`
	Lease   string `required:"" help:"The lease of the result that you have looked at." placeholder:"ID"`
	Hit     *int   `help:"The number of a place. By default all that wait." placeholder:"N"`
	Change  bool   `help:"Also what was decided otherwise before."`
	Reason  string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
}

func (researchReviewCmd) Prints() any { return v1.Explanation{} }

// Run decides, and shows what has become of the pair.
func (c *researchReviewCmd) Run(a *command.App) error {
	var hit int // 0: all that wait
	if c.Hit != nil {
		hit = *c.Hit
		if hit < 1 {
			return command.Usage("--hit %d: expected a number from 1", hit)
		}
	}
	action := "accept"
	if c.Reject {
		action = "reject"
	}
	return command.Show(a, command.ShowExplanation)(
		a.Client.ReviewPair(a.Ctx, c.Project, v1.ResearchReview{Action: action, Episode: c.Episode,
			Clip:  c.Clip,
			Lease: c.Lease, Hit: hit, Change: c.Change, Reason: c.Reason}))
}

// reviewText says what persons have said of the places of a result, "" if nobody is asked.
func reviewText(r v1.ResearchResult) string {
	numbers := map[string]int{}
	for _, mark := range r.Reviews {
		numbers[mark]++
	}
	var all []string
	for _, mark := range []string{"accepted", "rejected", "waits"} {
		if numbers[mark] > 0 {
			all = append(all, strconv.Itoa(numbers[mark])+" "+mark)
		}
	}
	return strings.Join(all, ", ")
}
