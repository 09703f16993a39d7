package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/stage"
)

// scannerLambda is the virus scanner of the deployment.
const scannerLambda = "archivist-e2e-scanner"

// TestVirusScan: a file in which the scanner finds a virus fails its job; another is stored, and its PREMIS says that
// it was scanned.
func TestVirusScan(t *testing.T) {
	begin(t)
	system.Register(scannerLambda, func(ctx context.Context, payload []byte) ([]byte, error) {
		var in stage.ScanRequest
		if err := json.Unmarshal(payload, &in); err != nil {
			return nil, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, in.URL, nil)
		if err != nil {
			return nil, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		return json.Marshal(stage.ScanAnswer{SHA512: in.SHA512, Infected: strings.Contains(string(data), "EICAR"),
			Signature: "Eicar-Test-Signature", Scanner: "TestAV 1.0"})
	})
	src := newSource(t)
	putProfile(t, "scanned", v1.Profile{Scan: true})
	_, job := submitTo(t, "scanned", src.put("/virus.txt", []byte("EICAR")))
	if j := ends(t, job, "Failed", soon); !strings.Contains(j.Message, `has found "Eicar-Test-Signature"`) {
		t.Errorf("it says %q", j.Message)
	}
	b, err := client.Submit(t.Context(), v1.BatchRequest{Collection: "scanned",
		Payload: v1.Payload{URL: src.put("/good.txt", []byte("good")), Type: "file"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	ark := ends(t, ingest.JobID(b.ID, 1), "Completed", soon).Identifiers.Primary
	body, err := client.Content(t.Context(), ark, 1, "system/premis.xml")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil || !strings.Contains(string(text), "No virus was found in 1 of 1 files") {
		t.Errorf("%s, %v", text, err)
	}
}
