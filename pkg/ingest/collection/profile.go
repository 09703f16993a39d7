package collection

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"archivist/pkg/formats/container"
	"archivist/pkg/ingest/policy"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// Profile is the settings of a collection. The zero value is the default, for a collection
// without a profile.
type Profile struct {
	Title string `dynamo:"title,omitempty" json:"title,omitempty"`

	// Priority of its jobs, 0 (first) to 999. nil: by the number of jobs in the batch.
	Priority *int `dynamo:"priority,omitempty" json:"priority,omitempty"`

	// Shoulder of its ARKs. "": that of the archive.
	Shoulder string `dynamo:"shoulder,omitempty" json:"shoulder,omitempty"`

	// Register says where its ARKs are registered: RegisterEZID, or "" for nowhere.
	Register string `dynamo:"registered_at,omitempty" json:"register,omitempty"`

	// RequireDigest refuses files without a digest of the depositor.
	RequireDigest bool `dynamo:"require_digest,omitempty" json:"requireDigest,omitempty"`

	// Notify are mail addresses, in addition to those of a submission.
	Notify []string `dynamo:"notify,omitempty" json:"notification,omitempty"`

	Suppress Suppress `dynamo:"suppress,omitempty" json:"suppress,omitempty"`
	Callback Callback `dynamo:"callback,omitempty" json:"callback"`

	// Defer are the consumers of events that do not handle the collection's for now, e.g. during
	// a bulk load. Its events wait in the log, and are handled once a consumer is not named.
	Defer []string `dynamo:"deferred_consumers,omitempty" json:"defer,omitempty"`

	// Containers says how they are unpacked; nil: by the defaults.
	Containers *Containers `dynamo:"containers,omitempty" json:"containers,omitempty"`

	// Scan has each file scanned for viruses before it is stored.
	Scan bool `dynamo:"scanned_files,omitempty" json:"scan,omitempty"`

	// Formats says which formats of files are taken; nil: all.
	Formats *Formats `dynamo:"formats,omitempty" json:"formats,omitempty"`

	// Sources says where its content may come from, and with which secrets; nil: from all public addresses, without
	// any.
	Sources *Sources `dynamo:"sources,omitempty" json:"sources,omitempty"`

	// LegalHold is why no content of the collection's objects may be deleted; nil: there is no hold. Put needs a "" to
	// lift one.
	LegalHold *string `dynamo:"legal_hold,omitempty" json:"legalHold,omitempty"`

	// RetainUntil is the last day, YYYY-MM-DD in UTC, on which no content of them may be deleted. "": none.
	RetainUntil string `dynamo:"retain_until,omitempty" json:"retainUntil,omitempty"`
}

// RegisterEZID is a Profile.Register.
const RegisterEZID = "ezid"

// Suppress says which mails are not sent.
type Suppress string

// None suppresses no mail, Partial the mail that a submission is queued, Full all mails.
const (
	None    Suppress = "none"
	Partial Suppress = "partial"
	Full    Suppress = "full"
)

// Callback is a request to a depositor's server for each preserved job.
type Callback struct {
	URL string `dynamo:"callback_url,omitempty" json:"url,omitempty"`

	// Secret is the name in Secrets Manager of the key that signs the requests; "" only without a URL: then those to
	// Hosts are not signed.
	Secret string `dynamo:"secret_name,omitempty" json:"secret,omitempty"`
	Mode   Mode   `dynamo:"callback_mode,omitempty" json:"mode,omitempty"`

	// Hosts are those that a submission may name in a callback of its own, with or without a port.
	Hosts []string `dynamo:"callback_hosts,omitempty" json:"hosts,omitempty"`
}

// MaxCallbackHosts is how many Hosts a Callback may have.
const MaxCallbackHosts = 20

// Given reports whether anything can be called.
func (c Callback) Given() bool { return c.URL != "" || len(c.Hosts) > 0 }

// Refuses returns why a submission to a collection may not have its callback sent to a URL, or "".
func (c Callback) Refuses(collection, raw string) string {
	u, err := url.Parse(raw)
	if err == nil && slices.ContainsFunc(c.Hosts, func(host string) bool { return fetch.Matches(host, u) }) {
		return ""
	}
	return "the profile of the collection " + collection + " does not allow submissions callbacks to " +
		fetch.Site(raw) + "; who may change the profile can add the host to callback.hosts"
}

// Mode says what happens to a job whose callback cannot be delivered.
type Mode string

// Required fails the job until it is requeued; BestEffort completes it and records the
// failure.
const (
	Required   Mode = "required"
	BestEffort Mode = "best-effort"
)

// Containers says how containers are unpacked. 0 is the default of a limit; see container.Limits.
type Containers struct {
	Keep     bool  `dynamo:"keep_container,omitempty" json:"keep,omitempty"` // the container becomes a file, too
	MaxFiles int   `dynamo:"max_files,omitempty" json:"maxFiles,omitempty"`
	MaxBytes int64 `dynamo:"max_bytes,omitempty" json:"maxBytes,omitempty"`
	MaxRatio int64 `dynamo:"max_ratio,omitempty" json:"maxRatio,omitempty"`
}

// The largest limits of a profile: a directory of more files does not fit into the memory of a function, and DEFLATE
// packs at most 1,032 times.
const (
	MaxFiles = 500_000
	MaxBytes = 1 << 50
	MaxRatio = 1100
)

// check returns an Invalid for a limit that no container can be unpacked by.
func (c *Containers) check() error {
	if c == nil {
		return nil
	}
	for _, limit := range []struct {
		name      string
		given, to int64
	}{{"maxFiles", int64(c.MaxFiles), MaxFiles}, {"maxBytes", c.MaxBytes, MaxBytes}, {"maxRatio", c.MaxRatio,
		MaxRatio}} {
		if limit.given < 0 || limit.given > limit.to {
			return fault.New(fault.Invalid,
				"containers.%s: %d: expected 1 to %d, or 0 for the default", limit.name,
				limit.given, limit.to)
		}
	}
	return nil
}

// Limits are those of the containers of the collection.
func (p Profile) Limits() container.Limits {
	l, c := container.DefaultLimits, p.Containers
	if c == nil {
		return l
	}
	l.Files, l.Bytes, l.Ratio = cmp.Or(c.MaxFiles, l.Files), cmp.Or(c.MaxBytes, l.Bytes), cmp.Or(c.MaxRatio, l.Ratio)
	return l
}

// KeepsContainers reports whether a container is kept beside its files.
func (p Profile) KeepsContainers() bool { return p.Containers != nil && p.Containers.Keep }

// Policy is what the profile says of the content of the collection's objects.
func (p Profile) Policy() policy.Collection {
	of := policy.Collection{RetainUntil: p.RetainUntil}
	if p.LegalHold != nil {
		of.LegalHold = *p.LegalHold
	}
	return of
}

// Access is what the profile allows a submission, with the files of the submission's upload, "" if it has none. It
// authorises nothing yet.
func (p Profile) Access(upload string) fetch.Access {
	a := fetch.Access{Upload: upload}
	if p.Sources != nil {
		a.Allow, a.Deny, a.Buckets = p.Sources.Allow, p.Sources.Deny, p.Sources.Buckets
	}
	return a
}

// Refuses returns why a submission with this upload, "" for none, takes no content of a URL; "" if it does. A URL that
// cannot be parsed is refused elsewhere.
func (p Profile) Refuses(upload string) func(raw string) string {
	return func(raw string) string {
		u, err := url.Parse(raw)
		if err != nil {
			return ""
		}
		return p.Access(upload).Refused(u)
	}
}

// SecretOf is the name of the secret for requests to a URL, "" if there is none. One of the host with its port goes
// before one of the host alone.
func (p Profile) SecretOf(u *url.URL) (name string) {
	if p.Sources == nil {
		return ""
	}
	for _, c := range p.Sources.Credentials {
		if strings.EqualFold(c.Host, u.Host) {
			return c.Secret
		}
		if fetch.Matches(c.Host, u) {
			name = c.Secret
		}
	}
	return name
}

// Recipients are the recipients of mails: those that the submission names, and the
// collection's own, without duplicates. They are sorted, so each try of a mail has the same order.
func (p Profile) Recipients(named []string) []string {
	all := slices.Concat(named, p.Notify)
	slices.Sort(all)
	return slices.Compact(all)
}
