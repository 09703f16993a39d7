package research

// Cmd is for projects of research: their definition, how far they are, their recordings, who works on them, and
// what was found.
type Cmd struct {
	List   researchListCmd   `cmd:"" help:"List the research projects."`
	Show   researchShowCmd   `cmd:"" help:"Show a research project."`
	Apply  researchApplyCmd  `cmd:"" help:"Create a research project, or change its definition."`
	Pause  researchPauseCmd  `cmd:"" help:"Assign no more work. What is assigned goes on."`
	Resume researchResumeCmd `cmd:"" help:"Assign work again, or to one researcher."`
	Status researchStatusCmd `cmd:"" help:"Show how far a project is, who is at work, and what needs a person."`

	Episodes researchMediaCmd `cmd:"" help:"List, import and show episodes; research them again."`
	Clips    researchMediaCmd `cmd:"" help:"List, import and show clips; research them again."`
	Feeds    researchFeedsCmd `cmd:"" help:"List and show podcast feeds; look at one soon."`

	Matrix researchMatrixCmd `cmd:"" help:"Show what is known of each pair of an episode and a clip."`

	Leases      researchLeasesCmd      `cmd:"" help:"List the leases that have not ended, the oldest first."`
	Revoke      researchRevokeCmd      `cmd:"" help:"End a lease. Its pairs without a result are assigned again."`
	Researchers researchResearchersCmd `cmd:"" help:"List the researchers that are present."`

	Differences researchDifferencesCmd `cmd:"" help:"List the pairs whose results differ."`
	Decide      researchDecideCmd      `cmd:"" help:"Decide which result of a pair counts, or ask another researcher."`

	Reviews researchReviewsCmd `cmd:"" help:"List the pairs with places that wait for a person."`
	Review  researchReviewCmd  `cmd:"" help:"Accept or reject places of a pair."`

	Results researchResultsCmd `cmd:"" help:"List the results of an episode or a clip."`
	Export  researchExportCmd  `cmd:"" help:"Export where clips occur: as JSON, CSV, WebVTT or labels of Audacity."`
	History researchHistoryCmd `cmd:"" help:"List what happened to a project, an episode, a clip or a lease."`

	Work workCmd `cmd:"" help:"Look for clips in episodes, on this computer."`
}
