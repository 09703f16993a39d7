package research

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/oklog/ulid/v2"

	"archivist/cmd/archivist/command"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/terminal"
	"archivist/pkg/research/analysis/shipped"
	"archivist/pkg/research/researcher"
	"archivist/pkg/research/researcher/pending"
)

// workCmd does research on this computer. The work itself is pkg/research/researcher; this is what a
// command line adds: the settings, the signals, and a line that shows it.
type workCmd struct {
	Project     string   `required:"" short:"p" help:"Research project to work for." placeholder:"NAME"`
	Name        string   `help:"${help_researcher}" placeholder:"NAME"`
	Concurrency int      `help:"How many work items are done at once." default:"1" placeholder:"N"`
	Cache       string   `help:"${help_cache}" placeholder:"FOLDER"`
	CacheSize   int64    `help:"How many GiB of recordings are kept, at most." default:"20" placeholder:"GIB"`
	Queue       string   `help:"${help_queue}" placeholder:"URL"`
	Allow       []string `help:"${help_allow}" placeholder:"NETWORK"`
	Once        bool     `help:"End after one work item."`
	UntilIdle   bool     `help:"End when there was no work for 90 seconds."`
}

// Help says how to end it.
func (workCmd) Help() string {
	return `A researcher receives work items, downloads their recordings, looks for each clip in its episode, and
reports each result at once. It needs HTTPS to the API and to the recordings, and nothing else. A key of the API with
the role researcher, for this project, is enough.

^C (or SIGTERM) winds it down: it finishes the clips at hand, and gives the rest of its work items back; a second one
ends it at once. Results that were not yet sent are kept in the cache folder, and sent when a researcher starts
there. Several researchers can have the same folder; each needs a name of its own.`
}

// mostAtOnce is how many work items a researcher takes at once, as the API limits it.
const mostAtOnce = 64

// Run does research until it is stopped: by a signal, after one item (--once), or when there was no work for a
// while (--until-idle). A first signal winds it down and gives work back; a second ends the process, and its
// leases end by themselves.
func (c *workCmd) Run(a *command.App) error {
	if c.Concurrency < 1 || c.Concurrency > mostAtOnce || c.CacheSize < 1 {
		return command.Usage("--concurrency is 1 to %d, and --cache-size at least 1", mostAtOnce)
	}

	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("the name of this computer: %w", err)
	}

	// Each researcher needs a name of its own.
	c.Name = cmp.Or(c.Name, fmt.Sprintf("%s-%d", host, os.Getpid()))
	show := &shown{line: a.StatusTo(a.Errors), all: map[int]researcher.Status{}}
	// What is worth a line goes above the progress.
	log := slog.New(slog.NewTextHandler(show.over(a), nil))
	r, err := c.researcher(a, host, log)
	if err != nil {
		return err
	}

	r.Watch = show.show
	stop, end := signal.NotifyContext(a.Ctx, syscall.SIGTERM)
	defer end()
	context.AfterFunc(stop, end) // a second signal ends the process at once
	if c.Queue != "" {
		r.Source, err = pending.New(stop, c.Queue, r.Server, log)
		if err != nil {
			return err
		}
	}

	// ^C is a way to end it well: what it returns counts.
	a.Ctx = context.WithoutCancel(a.Ctx)
	err = r.Run(a.Ctx, stop)
	show.end()
	return err
}

// researcher makes it of the command line and this computer.
func (c *workCmd) researcher(a *command.App, host string,
	log *slog.Logger) (*researcher.Researcher, error) {
	guard, err := c.guard(a)
	if err != nil {
		return nil, err
	}

	if c.Cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("no folder for the cache; name one with --cache: %w", err)
		}
		c.Cache = filepath.Join(dir, "archivist", "researcher")
	}

	// A copy, because other calls of this client have no time limit.
	web := *a.HTTP
	web.Timeout = time.Minute // of one call; the longest that the API takes is half a minute
	client := *a.Client
	client.HTTP = &web
	server := &researcher.API{
		Client:   &client,
		Project:  c.Project,
		Name:     c.Name,
		Host:     host,
		Software: a.Client.UserAgent,
		Now:      a.Now,
	}

	media := fetch.New(guard, rand.Float64)
	media.UserAgent = a.Client.UserAgent
	cache := &researcher.Cache{
		Dir:    filepath.Join(c.Cache, "recordings"),
		Limit:  c.CacheSize << 30,
		Client: media,
		Now:    a.Now,
	}

	reports := &researcher.Reports{
		Dir:  filepath.Join(c.Cache, "reports", folderOf(client.URL)),
		Name: c.Name,
		Now:  a.Now,
	}
	return &researcher.Researcher{
		Name:        c.Name,
		Concurrency: c.Concurrency,
		Once:        c.Once,
		UntilIdle:   c.UntilIdle,
		Server:      server,
		Source:      researcher.Next{Server: server},
		Cache:       cache,
		Reports:     reports,
		Analyses:    shipped.Analyses,
		Now:         a.Now,
		NewID:       func() string { return ulid.Make().String() },
		Jitter:      rand.Float64,
		Wait:        a.Wait,
		Log:         log,
	}, nil
}

// folderOf is a name of a folder for the URL of an API: reports that were not yet taken belong to the API that
// assigned their work.
func folderOf(api string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:?*<>|"`, r) {
			return '_'
		}
		return r
	}, strings.TrimSuffix(api, "/"))
}

// guard are the networks from which recordings are downloaded besides public addresses. By default only public
// ones are, because the address of a recording comes from others, who must not reach into the network of this
// computer.
func (c *workCmd) guard(a *command.App) (g fetch.Guard, err error) {
	list := c.Allow
	// Flags have precedence; networks are separated by commas here.
	if env := a.Getenv("ARCHIVIST_ALLOW"); len(list) == 0 && env != "" {
		list = strings.Split(env, ",")
	}

	for _, text := range list {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return g, command.Usage("--allow: found %q; expected a network such as 10.0.0.0/8", text)
		}
		g.Allow = append(g.Allow, p)
	}
	return g, nil
}

// shown shows what a researcher does in one line, with a part for each work item at hand. Several goroutines
// report at once.
type shown struct {
	mu   sync.Mutex
	line *terminal.Status
	all  map[int]researcher.Status
}

// show shows what one of the work items at hand is at. Slots are numbers from 0 without gaps.
func (s *shown) show(now researcher.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[now.Slot] = now
	var parts []string
	for slot := range len(s.all) {
		parts = append(parts, described(s.all[slot]))
	}
	s.line.Show(strings.Join(parts, " | "), false)
}

// end removes the line.
func (s *shown) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line.End()
}

// described is what is being done, for people: the episode, which clip, the step and its part, the speed
// compared with playing it, and what was found.
func described(s researcher.Status) string {
	if s.Doing == researcher.Waiting {
		return "waiting for work"
	}

	text := s.Episode
	if s.Clip > 0 {
		text += fmt.Sprintf("  clip %d of %d", s.Clip, s.Clips)
	}

	text += fmt.Sprintf("  %s %.0f %%", s.Doing, 100*s.Part)
	if s.Speed > 0 {
		text += fmt.Sprintf("  %.0f × real time", s.Speed)
	}
	return text + "  hits: " + fmt.Sprint(s.Hits)
}

// logLines writes lines of a log above the line of the progress, which is removed before and comes again with
// the next report.
type logLines struct {
	*shown
	a *command.App
}

// over is what a log is written to.
func (s *shown) over(a *command.App) logLines { return logLines{s, a} }

// Write writes one line of the log where the progress was, on the standard error.
func (l logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line.End()
	return l.a.Errors.Write(p)
}
