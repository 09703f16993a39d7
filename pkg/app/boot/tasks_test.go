package boot

import (
	"slices"
	"testing"
)

// TestTaskRunner: the function needs the name of one bucket and whose its folder is, and nothing else of the system.
func TestTaskRunner(t *testing.T) {
	f, err := TaskRunner(t.Context(), func(name string) string {
		switch name {
		case EnvWork:
			return "work"
		case EnvOwnTemp:
			return ""
		}
		t.Errorf("it asks for %s", name)
		return ""
	})
	if err != nil || f.Run == nil || f.Log == nil {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestTaskContainer: the variables of the image are for tasks, and those by which the program has its role and its
// job are not.
func TestTaskContainer(t *testing.T) {
	r, err := TaskContainer(t.Context(), func(string) string { return "work" }, []string{"PATH=/opt/vips/bin:/bin",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=/v2/credentials/x", "AWS_REGION=eu-west-1", "ARCHIVIST_JOB=runs/x/job",
		"ECS_CONTAINER_METADATA_URI_V4=http://169.254.170.2/v4/x", "JAWS_HOME=/opt/jaws"}, []string{"vips", "-v"})
	if err != nil || r.Name != "work" || !slices.Equal(r.Made, []string{"vips", "-v"}) ||
		!slices.Equal(r.Env, []string{"PATH=/opt/vips/bin:/bin", "JAWS_HOME=/opt/jaws"}) {
		t.Errorf("%+v, %v", r, err)
	}
}
