package api

import (
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest/collection"
)

// profileOf is the profile of a request.
func profileOf(b v1.Profile) collection.Profile {
	p := collection.Profile{
		Title:         b.Title,
		Priority:      b.Priority,
		Shoulder:      b.Shoulder,
		Register:      b.Register,
		Scan:          b.Scan,
		RequireDigest: b.RequireDigest,
		Notify:        b.Notification,
		Suppress:      collection.Suppress(b.Suppress),
		Defer:         b.Defer,
		LegalHold:     b.LegalHold,
		RetainUntil:   b.RetainUntil,
	}

	if f := b.Formats; f != nil {
		p.Formats = &collection.Formats{Refuse: f.Refuse, Accept: f.Accept, Warn: f.Warn,
			Others: collection.Verdict(f.Others)}
	}
	p.Sources = sourcesOf(b.Sources)
	p.Containers = (*collection.Containers)(b.Containers)
	if c := b.Callback; c != nil {
		p.Callback = collection.Callback{
			URL:    c.URL,
			Secret: c.Secret,
			Mode:   collection.Mode(c.Mode),
			Hosts:  c.Hosts,
		}
	}
	return p
}

// wireProfile is the wire form of a profile.
func wireProfile(p collection.Profile) v1.Profile {
	out := v1.Profile{
		Title:         p.Title,
		Priority:      p.Priority,
		Shoulder:      p.Shoulder,
		Register:      p.Register,
		Scan:          p.Scan,
		RequireDigest: p.RequireDigest,
		Notification:  p.Notify,
		Suppress:      string(p.Suppress),
		Defer:         p.Defer,
		RetainUntil:   p.RetainUntil,
	}

	if hold := p.Policy().LegalHold; hold != "" {
		out.LegalHold = &hold
	}

	if f := p.Formats; f != nil {
		out.Formats = &v1.Formats{Refuse: f.Refuse, Accept: f.Accept, Warn: f.Warn, Others: string(f.Others)}
	}
	out.Sources = wireSources(p.Sources)
	out.Containers = (*v1.Containers)(p.Containers)
	if c := p.Callback; c.Given() {
		out.Callback = &v1.Callback{URL: c.URL, Secret: c.Secret, Mode: string(c.Mode), Hosts: c.Hosts}
	}
	return out
}

func sourcesOf(b *v1.Sources) *collection.Sources {
	if b == nil {
		return nil
	}
	out := &collection.Sources{Allow: b.Allow, Deny: b.Deny, Buckets: b.Buckets}
	for _, c := range b.Credentials {
		out.Credentials = append(out.Credentials, collection.Credential(c))
	}
	return out
}

func wireSources(s *collection.Sources) *v1.Sources {
	if s == nil {
		return nil
	}
	out := &v1.Sources{Allow: s.Allow, Deny: s.Deny, Buckets: s.Buckets}
	for _, c := range s.Credentials {
		out.Credentials = append(out.Credentials, v1.Credential(c))
	}
	return out
}
