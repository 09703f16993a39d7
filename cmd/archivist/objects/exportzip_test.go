package objects

import (
	"archive/zip"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"archivist/pkg/formats/bagit"
)

// TestExportZip: an object is a zip file with a valid bag in one folder, and nothing else is left. One that is valid is
// kept, one that is damaged is written again.
func TestExportZip(t *testing.T) {
	c := exporting(t, "", "fk4x")
	const file = "out/ark_99999_fk4x.zip"
	var first []byte
	for n := range 3 {
		if n == 2 {
			if err := os.WriteFile(file, first[:len(first)/2], 0o644); err != nil {
				t.Fatal(err)
			}
		}
		before, _ := os.Stat(file)
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
		is, err := os.Stat(file)
		if err != nil || n == 1 && !os.SameFile(before, is) {
			t.Errorf("a valid file was written again: %v", err)
		}
		first, _ = os.ReadFile(file)
		if left, err := os.ReadDir("out"); err != nil || len(left) != 1 {
			t.Errorf("there is %v, %v", left, err)
		}
	}
}

// TestExportZipOfAnotherVersion: a valid zip file of an earlier version is not taken for the one that is wanted.
func TestExportZipOfAnotherVersion(t *testing.T) {
	c := exporting(t, "", "fk4x")
	c.Want(t, "object export ark:/99999/fk4x", 0, "")
	const folder = "ark_99999_fk4x"
	info := filepath.Join(folder, "bag-info.txt")
	text, err := os.ReadFile(info)
	earlier := strings.Replace(string(text), "Archivist-Version: 2", "Archivist-Version: 1", 1)
	if err != nil || earlier == string(text) || os.WriteFile(info, []byte(earlier), 0o644) != nil {
		t.Fatal(err)
	}
	tags, err := filepath.Glob(filepath.Join(folder, "tagmanifest-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tags {
		_ = os.Remove(name)
	}
	if err := zipFolder(folder, folder+".zip"); err != nil || os.RemoveAll(folder) != nil {
		t.Fatal(err)
	}

	c.Want(t, "object export ark:/99999/fk4x --as zip", 0, folder+".zip")
	r, err := zip.OpenReader(folder + ".zip")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := fs.ReadFile(r, folder+"/bag-info.txt")
	if err != nil || !strings.Contains(string(got), "Archivist-Version: 2") {
		t.Errorf("%s, %v", got, err)
	}
}
