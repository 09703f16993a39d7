package research

// projectName is the argument of most commands, one of those that the deployment names.
type projectName struct {
	Project string `arg:"" help:"Name of a research project."`
}
