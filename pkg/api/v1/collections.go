package v1

import "context"

// Profile is the settings of a collection. An absent field has its default value.
type Profile struct {
	// The title of the collection.
	Title string `json:"title,omitempty" maxLength:"500" example:"Historical maps"`
	// The priority of its jobs; 0 is first. By default it depends on the size of the batch.
	Priority *int `json:"priority,omitempty" minimum:"0" maximum:"999" example:"5"`
	// The shoulder of the ARKs that are minted for it. By default that of the archive.
	Shoulder string `json:"shoulder,omitempty" maxLength:"20" example:"fk4"`
	// Where its ARKs are registered. ezid: with EZID, which the deployment needs the setting ezid for. By default
	// nowhere.
	Register string `json:"register,omitempty" enum:"ezid" example:"ezid"`
	// Whether files without a digest are refused.
	RequireDigest bool `json:"requireDigest,omitempty"`
	// Mail addresses that are notified of each submission, in addition to those of the submission.
	Notification []string `json:"notification,omitempty" maxItems:"20" example:"[\"maps@example.org\"]"`
	// Which mails are suppressed. none: all mails are sent. partial: the notice that a batch is
	// queued is not sent. full: no mail is sent.
	Suppress string `json:"suppress,omitempty" enum:"none,partial,full"`

	// Consumers of events that do not handle the collection's events for now, e.g. during a bulk
	// load. The events wait, and are handled within five minutes once a consumer is not named.
	Defer []string `json:"defer,omitempty" maxItems:"50" example:"[\"search\"]"`
	// Requests to depositors' servers for each preserved job. By default there are none.
	Callback *Callback `json:"callback,omitempty"`
	// How containers (zip and tar files) are unpacked. By default their files are kept, and not the container.
	Containers *Containers `json:"containers,omitempty"`
	// Whether each file is scanned for viruses before it is stored. The deployment needs the setting scanFunction.
	Scan bool `json:"scan,omitempty"`
	// Which formats of files are taken. By default all.
	Formats *Formats `json:"formats,omitempty"`
	// Where its content may come from. By default from all public addresses, without credentials.
	Sources *Sources `json:"sources,omitempty"`
	// Why no content of the collection's objects may be deleted. A legal hold is lifted by an empty text: a profile
	// that leaves it out, or has another text, is refused with 409.
	LegalHold *string `json:"legalHold,omitempty" maxLength:"1000" example:"Case 17/2026"`
	// The last day (UTC) on which no content of the collection's objects may be deleted. It can be made later, not
	// earlier, and can be left out once the day has ended.
	RetainUntil string `json:"retainUntil,omitempty" format:"date" example:"2036-12-31"`
}

// Containers says how containers are unpacked. 0 is the default of a limit. A container beyond one is refused.
type Containers struct {
	// Whether the container is kept as a file of the object, too.
	Keep bool `json:"keep,omitempty"`
	// How many files a container may have. By default 200,000.
	MaxFiles int `json:"maxFiles,omitempty" minimum:"0" maximum:"500000" example:"1000"`
	// How many bytes its files may have together. By default 5 TiB.
	MaxBytes int64 `json:"maxBytes,omitempty" minimum:"0" maximum:"1125899906842624" example:"1099511627776"`
	// How many times its size its files may have together, if that is more than 64 MiB. By default 200.
	MaxRatio int64 `json:"maxRatio,omitempty" minimum:"0" maximum:"1100" example:"500"`
}

// Formats says which formats of files are taken. An entry is an id of PRONOM (fmt/353), UNKNOWN, a media type
// (image/tiff), or all media types of a kind (image/*). Of several that fit a file, refuse counts first, then accept.
type Formats struct {
	// The formats of which a file fails its job. By default none.
	Refuse []string `json:"refuse,omitempty" maxItems:"200" example:"[\"fmt/899\"]"`
	// The formats that are taken. By default those that no other list has.
	Accept []string `json:"accept,omitempty" maxItems:"200" example:"[\"image/*\"]"`
	// The formats that are taken with a warning. By default none.
	Warn []string `json:"warn,omitempty" maxItems:"200" example:"[\"UNKNOWN\"]"`
	// What is done with all others. By default they are accepted.
	Others string `json:"others,omitempty" enum:"accept,warn,refuse" example:"warn"`
}

// Sources says where the content of a collection may come from. A host is a name or an address, with a port or without;
// *.example.org are all hosts below example.org. Redirects are followed to allowed hosts only.
type Sources struct {
	// The hosts from which content is taken. By default all that deny does not name.
	Allow []string `json:"allow,omitempty" maxItems:"50" example:"[\"*.example.org\"]"`
	// The hosts from which no content is taken. By default none.
	Deny []string `json:"deny,omitempty" maxItems:"50" example:"[\"old.example.org\"]"`
	// The secrets by which requests to hosts are authorised, by https only. By default there are none.
	Credentials []Credential `json:"credentials,omitempty" maxItems:"50"`
	// The S3 buckets whose objects s3 URLs may name. The setting sourceBuckets must have them. By default none.
	Buckets []string `json:"buckets,omitempty" maxItems:"50" example:"[\"digitisation\"]"`
}

// Credential is the secret of one host. A secret is JSON: {"host", "username", "password"} or {"host", "token"}. It is
// sent to the host that it names itself, and to no other one.
type Credential struct {
	// The host, with a port or without.
	Host string `json:"host" maxLength:"253" example:"files.example.org"`
	// The name of the secret in AWS Secrets Manager. It begins with archivist/sources/.
	Secret string `json:"secret" maxLength:"512" example:"archivist/sources/files"`
}

// Callback is about requests to depositors' servers for each preserved job: to the server of the collection, to those
// that submissions name, or both.
type Callback struct {
	// The https URL that the request is sent to. By default only those of submissions are called.
	URL string `json:"url,omitempty" maxLength:"2048" example:"https://example.org/preserved"`
	// The name of the secret in AWS Secrets Manager that signs the requests. It begins with archivist/. Required with a
	// URL; by default those of submissions are not signed.
	Secret string `json:"secret,omitempty" maxLength:"512" example:"archivist/callback"`
	// required, the default: a job whose callback fails is Failed until it is requeued. best-effort: it completes.
	Mode string `json:"mode,omitempty" enum:"required,best-effort"`
	// The hosts that submissions may name in a callback of their own, with a port or without. By default none.
	Hosts []string `json:"hosts,omitempty" maxItems:"20" example:"[\"example.org\"]"`
}

// CollectionName is a collection in a list.
type CollectionName struct {
	// The name of the collection.
	Name string `json:"name" example:"maps"`
}

// Collection is a collection with its profile.
type Collection struct {
	// The name of the collection.
	Name string `json:"name" example:"maps"`
	// Whether the collection has no profile of its own and uses the default.
	Default bool `json:"default,omitempty"`
	// The hold of the collection, if it is held.
	Hold *Hold `json:"hold,omitempty"`
	// What the caller may do with it: actions of `POST /v1/collections/{name}/actions`. Absent if there is nothing,
	// and in the answer to a change of the profile.
	Actions []string `json:"actions,omitempty" example:"[\"hold\"]"`
	// The profile of the collection.
	Profile Profile `json:"profile"`
	// Whether it was never used: no submission has named it, it has no profile of its own and no objects. By default it
	// was.
	New bool `json:"new,omitempty"`
	// Of a new one: collections whose names differ in at most two characters, at most five. Absent if there are none.
	Near []string `json:"near,omitempty" example:"[\"maps\"]"`
}

// Collections lists the names of all collections, in their order.
func (c *Client) Collections(ctx context.Context) ([]string, error) {
	all, err := list[CollectionName](ctx, c, "/v1/collections", 0)
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = one.Name
	}
	return names, err
}

// Collection returns a collection's profile.
func (c *Client) Collection(ctx context.Context, name string) (Collection, error) {
	return get[Collection](ctx, c, at("collections", name))
}

// PutCollection creates or replaces a collection's profile.
func (c *Client) PutCollection(ctx context.Context, name string, p Profile) (Collection, error) {
	return put[Collection](ctx, c, at("collections", name), p)
}
