package console

import "archivist/pkg/kernel/access"

// onProjects is what can be done to a research project.
var onProjects = deedKind{Page: "research/{0}", Path: "/v1/research/{0}/actions", Deeds: []deed{
	{Name: "pause", Title: "Pause", Role: access.Operator, States: []string{"runs"},
		Means: "No more work is assigned. What is assigned goes on.", Done: "It is paused.",
		Command: "archivist research pause {0}"},
	{Name: "resume", Title: "Resume", Role: access.Operator, States: []string{"paused"},
		Means: "Work is assigned again.", Done: "The pause has ended.",
		Command: "archivist research resume {0}"},
	{Name: "resume-one", Action: "resume", Title: "Assign work to a researcher again",
		Role: access.Operator, Row: true,
		Means: "The researcher gets work items again.", Done: "The researcher gets work again.",
		Fields: []asking{
			{Name: "researcher", Label: "Researcher", Form: "text", Required: true,
				Option: "--researcher"}},
		Command: "archivist research resume {0}"},
	{Name: "decide", Title: "Take a result", Role: access.Operator,
		Path: "/v1/research/{0}/differences/actions",
		Row:  true,
		Means: "The results of the pair differ. The result of this lease counts; the others " +
			"stay in the history.",
		Done: "The result counts.", Fields: []asking{{Name: "action", Value: "decide"},
			{Name: "episode", Label: "Episode", Form: "text", Required: true},
			{Name: "clip", Label: "Clip", Form: "text", Required: true},
			{Name: "lease", Label: "Lease whose result counts", Form: "text", Required: true,
				Option: "--lease"}},
		Command: "archivist research decide {0}"},
	{Name: "another", Title: "Ask another researcher", Role: access.Operator, Row: true,
		Path:  "/v1/research/{0}/differences/actions",
		Means: "The results of the pair differ. One more researcher gets it.",
		Done:  "Another researcher is asked.", Fields: []asking{{Name: "action", Value: "decide"},
			{Name: "another", Value: "true", Option: "--another"},
			{Name: "episode", Label: "Episode", Form: "text", Required: true},
			{Name: "clip", Label: "Clip", Form: "text", Required: true}},
		Command: "archivist research decide {0}"},
}}

// onLeases is what can be done to a lease: its id is that of the project, and its own.
var onLeases = deedKind{Page: "research/{0}", Path: "/v1/research/{0}/leases/{1}/actions",
	Deeds: []deed{
		{Name: "revoke", Title: "Revoke a lease", Role: access.Operator, Row: true, Loses: true,
			Means: "The lease ends. Its pairs without a result are assigned again; what its " +
				"researcher reports later is refused.",
			Done: "The lease is revoked.", Command: "archivist research revoke {0} {1}"},
	}}

// onEpisodes and onClips are what can be done to a recording: its id is that of the project, and its own.
var (
	onEpisodes = deedKind{Page: "research/{0}/episodes/{1}",
		Path: "/v1/research/{0}/episodes/{1}/actions",
		Deeds: []deed{retryOf("episodes"),
			reviewing("accept", "Accept a place", "It is exported.", "The place is accepted."),
			reviewing("reject", "Reject a place", "It is not exported.", "The place is rejected.")}}
	onClips = deedKind{Page: "research/{0}/clips/{1}", Path: "/v1/research/{0}/clips/{1}/actions",
		Deeds: []deed{retryOf("clips")}}
)

// retryOf is the deed that researches a recording again.
func retryOf(kind string) deed {
	return deed{Name: "retry", Title: "Research it again", Role: access.Operator,
		States: []string{"set-aside", "deferred"},
		Means: "It was set aside or deferred because it failed. It is researched again, as if " +
			"it were new.",
		Done: "It is researched again.", Command: "archivist research " + kind + " retry {0} {1}"}
}

// reviewing is the deed by which a person accepts or rejects a place where a clip occurs.
func reviewing(action, title, means, done string) deed {
	return deed{Name: action, Title: title, Role: access.Operator, Row: true,
		Path:  "/v1/research/{0}/reviews/actions",
		Means: means + " A later decision can change that.", Done: done,
		Fields: []asking{{Name: "action", Value: action, Option: "--" + action},
			{Name: "episode", Label: "Episode", Form: "text", Required: true},
			{Name: "clip", Label: "Clip", Form: "text", Required: true},
			{Name: "lease", Label: "Lease of the result", Form: "text", Required: true,
				Option: "--lease"},
			{Name: "hit", Label: "Number of the place; empty: all that wait", Form: "number",
				Option: "--hit"},
			{Name: "change", Label: "Also if it was decided otherwise before", Form: "flag",
				Option: "--change"}},
		Command: "archivist research review {0}"}
}
