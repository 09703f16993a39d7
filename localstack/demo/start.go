package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"archivist/localstack"
	"archivist/localstack/issuer"
	"archivist/pkg/app/boot"
	"archivist/pkg/app/inprocess"
	"archivist/pkg/kernel/signin"
)

// Start starts a demo. Everything works when it returns, and the sample is preserved. After an error nothing is
// left, as after Close. ctx ends only the start.
func Start(ctx context.Context, o Options) (d *Demo, err error) {
	if o.Out == nil {
		o.Out = io.Discard
	}

	d = &Demo{options: o, out: &shared{to: o.Out}}
	// Each step needs those before it. What they have opened is closed by Close, also after a failure in the
	// middle.
	for _, step := range []func() error{d.open, d.signIns, d.start, d.serve, d.publish,
		func() error { return d.userFunctions(ctx) }, func() error { return d.sample(ctx) }} {
		err = step()
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return d, nil
}

// open opens the state, in the folder of --keep or a temporary one.
func (d *Demo) open() (err error) {
	d.state, err = openState(d.options.Keep)
	return err
}

// Ports of what is served beside the API, counted from its own. That of local content is the one of make run.
const (
	portOfBuckets = 1
	portOfContent = 14
	portOfIssuer  = 15
)

// address is where a server listens: on loopback only, since the demo asks for no key. offset is counted from
// the port of the API.
func (d *Demo) address(offset int) string {
	if d.options.Port == 0 {
		return "127.0.0.1:0"
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(d.options.Port+offset))
}

// listen listens on a port of the demo. The error says which option chooses another.
func (d *Demo) listen(offset int) (net.Listener, error) {
	l, err := net.Listen("tcp", d.address(offset))
	if err != nil {
		return nil, fmt.Errorf("port %d is in use by another program; stop that program, or choose another port: "+
			"--port %d", d.options.Port+offset, d.options.Port+100)
	}
	return l, nil
}

// isFree fails if a port of the demo is in use. The system listens there itself, and would not say which option
// chooses another.
func (d *Demo) isFree(offset int) error {
	l, err := d.listen(offset)
	if err != nil {
		return err
	}
	return l.Close()
}

// signIns starts the issuer of tokens, if there is to be one. The demo has an account of its own
// there, for the sample, whose secret nobody else knows.
func (d *Demo) signIns() (err error) {
	if !d.options.Issuer {
		return nil
	}
	accounts := issuer.Default()
	if d.options.Accounts != "" {
		accounts, err = issuer.Read(d.options.Accounts)
		if err != nil {
			return err
		}
	}
	own := issuer.Machine{ID: "the-demo", Secret: rand.Text(), Groups: []string{"administrator"}}
	accounts.Machines = append(accounts.Machines, own)

	l, err := d.listen(portOfIssuer)
	if err != nil {
		return err
	}
	at := "http://" + l.Addr().String()
	d.Issuer, err = issuer.New(issuer.Settings{URL: at, Accounts: accounts, Now: time.Now})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	d.goServe(l, d.Issuer)

	d.issuer = inprocess.Issuer{URL: at, Audience: issuer.Audience, Claims: issuer.Claims(),
		Client: issuer.ClientID, Scopes: issuer.Scopes()}
	program := &signin.Program{ID: own.ID, Secret: own.Secret, HTTP: http.DefaultClient, Now: time.Now,
		At: func(context.Context) (string, error) { return at, nil }}
	d.token = program.Token
	return nil
}

// start starts the system, and its API.
func (d *Demo) start() error {
	api, err := d.listen(0)
	if err != nil {
		return err
	}

	d.APIURL = "http://" + api.Addr().String()
	err = d.isFree(portOfBuckets)
	if err != nil {
		return errors.Join(err, api.Close())
	}

	limits := boot.DefaultLimits
	// All other limits are those of a deployment.
	limits.MaxInFlight = localstack.MaxInFlight
	d.system, err = inprocess.Start(inprocess.Settings{
		Timing:        "quick",
		Limits:        limits,
		MailFrom:      sender,
		APIURL:        d.APIURL,
		Projects:      []string{localstack.ResearchProject},
		ResearchTimes: localstack.ResearchTimes,
		Revisions:     true,
		Issuer:        d.issuer,
		Origins:       d.options.Origins,
		Console:       []string{d.APIURL, strings.Replace(d.APIURL, "127.0.0.1", "localhost", 1)},
		Each:          tick,
		Listen:        d.address(portOfBuckets),
		Dir:           d.state.scratch,
		Table:         d.state.table,
		Buckets:       d.state.buckets,
		Mail:          d.showMail,
		Log:           d.logger(),
	})
	if err != nil {
		return errors.Join(err, api.Close())
	}

	d.goServe(api, d.system.API())
	return nil
}

// sender is the address from which mails come.
const sender = "archivist@demo.example"

// tick is the interval of the rules that look for what is overdue. On AWS it is a minute; here nobody wants to
// wait so long.
const tick = 5 * time.Second

// goServe serves until the demo ends. Close closes the server and waits for this goroutine.
func (d *Demo) goServe(l net.Listener, h http.Handler) {
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	d.servers = append(d.servers, server)
	d.serving.Go(func() { _ = server.Serve(l) }) // until it is closed
}

// logger writes what the system logs to a file of the state, and with Verbose to the terminal as well.
func (d *Demo) logger() *slog.Logger {
	var to io.Writer = d.state.log
	if d.options.Verbose {
		to = io.MultiWriter(to, d.out)
	}
	return slog.New(slog.NewTextHandler(to, nil))
}

// serve serves local content, and the socket on which the demo is told what to do. The socket is in the
// temporary folder, since no later demo needs it.
func (d *Demo) serve() error {
	content, err := localstack.SourcesHandler(d.state.path("repositories"))
	if err != nil {
		return err
	}

	l, err := d.listen(portOfContent)
	if err != nil {
		return err
	}

	d.goServe(l, content)
	d.SampleURL = "http://" + l.Addr().String()
	path := filepath.Join(d.state.scratch, "control.sock")
	l, err = net.Listen("unix", path)
	if err != nil {
		return err
	}

	d.goServe(l, d.control())
	all := d.system.Outputs()
	d.Outputs = localstack.Outputs{
		APIURL:           d.APIURL,
		SampleURL:        d.SampleURL,
		EndpointURL:      all["endpointUrl"],
		Region:           localstack.Region,
		TableName:        all["tableName"],
		StorageBucket:    all["storageBucket"],
		WorkBucket:       all["workBucket"],
		SampleCollection: localstack.SampleCollection,
		State:            d.state.dir,
		Control:          path,
		All:              all,
	}
	return nil
}

// publish lets the command line find the demo, unless it would find another that answers: what is there from a
// process that has died is replaced.
func (d *Demo) publish() error {
	if d.options.Folder == "" {
		return nil
	}
	other, err := localstack.Published(d.options.Folder)
	// The file of a demo or a stack that has died is not respected: nobody would find this one.
	anothers := other.APIURL != d.APIURL && answers(other.APIURL)
	if err != nil || anothers {
		return err
	}
	d.published = true
	return d.Publish(d.options.Folder)
}

// answers reports whether there is an API at a URL: it must answer a request within two seconds, not only be
// connected to. One that demands a token answers, too.
func answers(url string) bool {
	if url == "" {
		return false
	}
	client := http.Client{Timeout: 2 * time.Second}
	resp, err := client.Get(url + "/v1/queue")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusUnauthorized
}

// Close ends everything: first nobody finds it any more, and the state is closed last. Without --keep nothing is
// left. It can be called after a start that has failed.
func (d *Demo) Close() (err error) {
	if d.published {
		err = d.Withdraw(d.options.Folder)
	}

	if d.functions != nil {
		d.functions.close()
	}

	for _, s := range d.servers {
		err = errors.Join(err, s.Close())
	}

	d.serving.Wait()
	if d.system != nil {
		err = errors.Join(err, d.system.Close())
	}

	if d.state != nil {
		err = errors.Join(err, d.state.close())
	}
	return err
}
