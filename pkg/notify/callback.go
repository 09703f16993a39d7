package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// Preserved is what a callback says: a job's version is preserved. It can come
// twice; then ID is the same.
type Preserved struct {
	ID              string   `json:"id"`
	Type            string   `json:"type"` // "job.preserved"
	Job             string   `json:"job"`
	Batch           string   `json:"batch"`
	Collection      string   `json:"collection"`
	ARK             string   `json:"ark"`
	Version         int      `json:"version"`
	NoChange        bool     `json:"noChange"`
	LocalIDs        []string `json:"localIds"`
	Files           int      `json:"files"`
	Bytes           int64    `json:"bytes"`
	InventoryDigest string   `json:"inventoryDigest"` // sha512 of the OCFL inventory
}

// SignatureHeader carries the signature of a callback.
const SignatureHeader = "Archivist-Signature"

// Sign returns the signature of a callback's body: "t=<seconds>,v1=<hex>", where
// v1 is HMAC-SHA256 over "<seconds>.<body>". A receiver refuses old times.
func Sign(key string, body []byte, at time.Time) string {
	mac := hmac.New(sha256.New, []byte(key))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}
