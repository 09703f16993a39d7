package api_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/views/formatcounts"
	"archivist/pkg/views/statistics"
)

// TestFormatsRoute: files and bytes are counted by format, of a collection and of all; a
// depositor sees those of their own collections only, also as CSV. An object that was added and
// is not counted makes the counts not whole.
func TestFormatsRoute(t *testing.T) {
	if v1.OtherFormats != formatcounts.Others {
		t.Errorf("others are %q on the wire", v1.OtherFormats)
	}
	a, _ := service(through)
	a.Formats = formatcounts.Store{Table: a.Queue.Table}
	a.Statistics = statistics.Store{Table: a.Queue.Table}
	a.Open, a.Authenticator = false, tokens{"all": granted("viewer"), "maps": {Subject: "2",
		Grants: granted("depositor:maps").Grants}, "both": {Subject: "3",
		Grants: granted("depositor:maps", "depositor:letters").Grants}}
	add := adder(t, a)
	add("maps", true)
	add("maps", true)
	add("letters", true)

	srv := httptest.NewServer(a.Handler())
	t.Cleanup(srv.Close)
	client := &v1.Client{URL: srv.URL, HTTP: srv.Client()}
	ask := func(who, collection string) v1.FormatCounts {
		t.Helper()
		client.Bearer = as(who)
		is, err := client.FormatCounts(t.Context(), collection)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	for _, x := range []struct {
		who, collection string
		objects         int64
	}{{"all", "", 3}, {"all", "maps", 2}, {"all", "none", 0}, {"maps", "", 2}, {"maps", "maps", 2},
		{"both", "letters", 1}} {
		is := ask(x.who, x.collection)
		if is.Objects != x.objects || is.Added != x.objects || !is.Whole || is.Files != 2*x.objects ||
			is.Identified != x.objects || x.objects > 0 && (is.Formats[0].Format != "fmt/1" ||
			is.Formats[0].Bytes != 20*x.objects || is.Formats[1].MediaType != "a/b") {
			t.Errorf("%s of %q: %+v", x.who, x.collection, is)
		}
	}
	client.Bearer = as("maps")
	if is, err := client.FormatCounts(t.Context(), "letters"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a depositor of others gets %+v, %v", is, err)
	}

	want := "mediaType,format,name,files,bytes\r\n'=SUM(A1),fmt/1,Of maps,2,40\r\na/b,,,2,20\r\n"
	for _, x := range [][2]string{{"maps", ""}, {"all", "&collection=maps"}} {
		if status, text := formatTable(t, srv, x[0], x[1]); status != http.StatusOK || text != want {
			t.Errorf("%s gets %d %q, want %q", x[0], status, text, want)
		}
	}
	if status, text := formatTable(t, srv, "maps", "&collection=letters"); status != http.StatusNotFound {
		t.Errorf("a depositor of others gets %d %q", status, text)
	}

	add("letters", false)
	for _, collection := range []string{"letters", ""} {
		if is := ask("all", collection); is.Whole || is.Added != is.Objects+1 {
			t.Errorf("of %q: %+v", collection, is)
		}
	}
}

// adder adds objects of two files, which are counted by format if that is said.
func adder(t *testing.T, a *api.API) func(collection string, counted bool) {
	store := formatcounts.Store{Table: a.Queue.Table, NewID: a.Queue.NewID,
		Read: func(_ context.Context, ark string) (formatcounts.Share, error) {
			_, collection, _ := strings.Cut(ark, "=")
			return formatcounts.Share{Collection: collection, Version: 1,
				Counts: formatcounts.Counts{Objects: 1, Files: 2, Bytes: 30, Identified: 1,
					Formats: []formatcounts.Format{{MediaType: "a/b", Files: 1, Bytes: 10},
						{ID: "fmt/1", MediaType: "=SUM(A1)", Name: "Of " + collection, Files: 1,
							Bytes: 20}}}}, nil
		}}
	counter := statistics.Counter{Table: a.Queue.Table, NewID: a.Queue.NewID}
	seq := int64(0)
	return func(collection string, counted bool) {
		t.Helper()
		seq++
		ark := fmt.Sprintf("ark:/1/x%d=%s", seq, collection)
		e := envelope.Event{ID: fmt.Sprint(seq), Seq: seq, Partition: collection,
			Type: "object.create", Action: envelope.Create,
			Subject: envelope.Ref{Type: "Object", ID: ark},
			Parents: []envelope.Ref{{Type: "Collection", ID: collection}}}
		b := consumer.Batch{Events: []consumer.Item{{Event: e}}}
		_, err := counter.Handle(t.Context(), b)
		if err == nil && counted {
			_, err = store.Handle(t.Context(), b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// formatTable is the answer to a request for the formats as CSV.
func formatTable(t *testing.T, srv *httptest.Server, who, query string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		srv.URL+"/v1/formats?format=csv"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+who)
	resp, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
