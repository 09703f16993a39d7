package objects

import (
	"archive/zip"
	"io/fs"
	"os"
	"testing"

	"archivist/pkg/formats/bagit"
)

// TestExportZip: an object is a zip file with a valid bag in one folder; nothing else is left; again it is the same.
func TestExportZip(t *testing.T) {
	c := exporting(t, "", "fk4x")
	for range 2 {
		c.Want(t, "object export ark:/99999/fk4x --as zip -o out", 0, "out/ark_99999_fk4x.zip")
		r, err := zip.OpenReader("out/ark_99999_fk4x.zip")
		if err != nil {
			t.Fatal(err)
		}
		bag, err := fs.Sub(r, "ark_99999_fk4x")
		if err != nil {
			t.Fatal(err)
		}
		report, err := bagit.Check(t.Context(), bag, nil)
		if err != nil || len(report.Problems) > 0 || report.Files != 2 {
			t.Errorf("%+v, %v", report, err)
		}
		_ = r.Close()
		if left, err := os.ReadDir("out"); err != nil || len(left) != 1 {
			t.Errorf("there is %v, %v", left, err)
		}
	}
}
