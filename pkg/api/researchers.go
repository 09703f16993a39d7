package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/research"
)

// ResearcherHello says that a researcher is present.
type ResearcherHello struct {
	ProjectInput
	Body v1.ResearchHello
}

// ResearcherBye says that a researcher leaves.
type ResearcherBye struct {
	ProjectInput
	Body v1.ResearchBye
}

// ResearcherNext asks for a work item.
type ResearcherNext struct {
	ProjectInput
	Body v1.ResearchNext
}

// ResearcherAccept accepts a work item.
type ResearcherAccept struct {
	ProjectInput
	Body v1.ResearchAccept
}

// ResearcherReports has results.
type ResearcherReports struct {
	ProjectInput
	Body v1.ResearchReports
}

// maxReports is the size of a request with ten reports of a thousand hits each.
const maxReports = 2 << 20

// perhapsWork is a work item, or the status 204. Body is nil then, and no body is sent.
type perhapsWork struct {
	Status int
	Body   *v1.ResearchWork
}

// researchers registers what researchers call. The name of a researcher is not verified: whoever has a
// key for the project can have any. An answer may be lost, so each of these requests can be repeated.
func (a *API) researchers(h huma.API) {
	const project = researchProject
	post(a, h, project+"/hello", "helloResearcher", "Say that a researcher is present", a.hello)
	bye := operationAt(http.MethodPost, project+"/bye", "byeResearcher", "Say that a researcher leaves")
	bye.DefaultStatus = http.StatusNoContent
	huma.Register(h, bye, func(ctx context.Context, in *ResearcherBye) (*struct{}, error) {
		if err := a.bye(ctx, in); err != nil {
			return nil, a.problem(err)
		}
		return nil, nil
	})

	next := operationAt(http.MethodPost, project+"/next", "nextWork", "Get the next work item")
	huma.Register(h, next, func(ctx context.Context, in *ResearcherNext) (*perhapsWork, error) {
		w, err := a.Research.Next(ctx, in.Project, research.Acceptance{Researcher: in.Body.Researcher,
			Token: in.Body.Token, By: researching(ctx, in.Body.Researcher)}, a.PendingWork)
		switch {
		case err != nil:
			return nil, a.problem(err)
		case w == nil:
			return &perhapsWork{Status: http.StatusNoContent}, nil
		}
		out := wireWork(*w)
		return &perhapsWork{http.StatusOK, &out}, nil
	})

	post(a, h, project+"/accept", "acceptWork", "Accept a work item", a.acceptWork)
	reports := operationAt(http.MethodPost, project+"/reports", "reportWork", "Report results")
	reports.DefaultStatus, reports.MaxBodyBytes = http.StatusAccepted, maxReports
	register(a, h, reports, a.reportWork)
}

// researching is the actor of what a researcher does: who was identified by a token, with the name that the researcher
// gives itself; "" if nobody was.
func researching(ctx context.Context, name string) string {
	x := identityOf(ctx)
	if x.Subject == "" {
		return ""
	}
	return fmt.Sprintf("%s (unverified: %q)", named(x), name)
}

// hello says that a researcher is present, until when that holds, and how often to say it again.
func (a *API) hello(ctx context.Context, in *ResearcherHello) (out v1.ResearchWelcome, err error) {
	b, t := in.Body, a.Research.Times
	until := a.Research.Now().Add(t.Presence)
	err = a.Research.Heartbeat(ctx, in.Project, research.Researcher{
		Name:     b.Researcher,
		Capacity: b.Capacity,
		Host:     b.Host,
		Software: b.Software,
	})
	return v1.ResearchWelcome{Until: timestamp(until.UnixMilli()),
		RenewSeconds: int(t.Renewal.Seconds())}, err
}

// bye ends the presence of a researcher. A project that does not exist is a NotFound.
func (a *API) bye(ctx context.Context, in *ResearcherBye) error {
	if _, err := a.Research.Project(ctx, in.Project); err != nil {
		return err
	}
	return a.Research.Leave(ctx, in.Project, in.Body.Researcher)
}

// acceptWork is for researchers that receive from the queue themselves. The lease is looked up first,
// because a key is for one project, and the lease has to be one of it.
func (a *API) acceptWork(ctx context.Context, in *ResearcherAccept) (v1.ResearchWork, error) {
	_, err := a.lease(ctx, &LeaseInput{ProjectInput: in.ProjectInput, Lease: in.Body.Lease})
	if err != nil {
		return v1.ResearchWork{}, err
	}

	err = a.Research.Admit(ctx, in.Project, in.Body.Researcher)
	if err != nil {
		return v1.ResearchWork{}, err
	}

	w, err := a.Research.Accept(ctx, research.Acceptance{
		Lease:      in.Body.Lease,
		Researcher: in.Body.Researcher,
		Token:      in.Body.Token,
		By:         researching(ctx, in.Body.Researcher),
	})
	return wireWork(w), err
}

// wireWork is the wire form of a work item: what to look for, in which recording, by which analysis.
func wireWork(w research.Work) v1.ResearchWork {
	return v1.ResearchWork{
		Lease:    wireLease(w.Lease),
		Analysis: w.Analysis,
		Episode:  wireRecording(w.Episode),
		Clips:    each(w.Clips, wireRecording),
	}
}

func wireRecording(s research.Subject) v1.ResearchRecording {
	return v1.ResearchRecording{
		Key:    s.Key,
		Title:  s.Title,
		URL:    s.URL,
		Size:   s.Size,
		SHA256: s.SHA256,
	}
}

// reportWork puts reports on the queue of completed work, all or none: those of a request that is
// repeated are stored once. All are checked before any is put there. An error names the first report
// that is wrong by its place, from 0.
func (a *API) reportWork(ctx context.Context,
	in *ResearcherReports) (out v1.ResearchReceived, err error) {
	_, err = a.Research.Project(ctx, in.Project)
	if err != nil {
		return out, err
	}

	all := make([]research.Report, len(in.Body.Reports))
	for i, r := range in.Body.Reports {
		all[i] = research.Report(r)
		if err := checkReport(all[i], in.Project); err != nil {
			return out, fault.New(fault.Invalid, "reports[%d].%w", i, err)
		}
	}

	err = a.CompletedWork(ctx, all)
	if err != nil {
		return out, fmt.Errorf("put reports on the queue of completed work: %w", err)
	}
	return v1.ResearchReceived{Reports: len(all)}, nil
}

// checkReport refuses a report that is wrong, or of another project: the caller may be a researcher of one project
// only.
func checkReport(r research.Report, project string) error {
	if err := r.Check(); err != nil {
		return err
	}
	if r.Project != project {
		return fault.New(fault.Invalid, "project: found %q; the path names %q", r.Project, project)
	}
	return nil
}
