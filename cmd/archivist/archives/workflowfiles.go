package archives

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/workflow"
)

// workflowFolder is the argument of most commands: a working copy, or the folder of definitions itself.
type workflowFolder struct {
	Folder string `arg:"" name:"folder" default:"." help:"Working copy of an archive, or a folder with its files."`
}

// read reads the definition of a folder. What is wrong is one error, with the number of the others; lint prints
// all.
func (c workflowFolder) read() (*workflow.Definition, error) {
	files, err := workflowFiles(c.Folder)
	if err != nil {
		return nil, err
	}

	d, problems := workflow.Parse(files)
	if len(problems) == 0 {
		return d, nil
	}

	more := ""
	if n := len(problems) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more; run archivist archive workflow lint %s)", n, c.Folder)
	}
	return nil, fault.New(fault.Invalid, "%s%s", problems[0], more)
}

// workflowFiles reads files with tasks, and those of folders, in the order of the paths. A file that is named
// and cannot have tasks is an error; in a folder it is passed over.
func workflowFiles(paths ...string) ([]workflow.File, error) {
	var out []workflow.File
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, fault.New(fault.NotFound, "%w", err)
		case info.IsDir():
			files, err := filesBelow(path)
			if err != nil {
				return nil, err
			}
			out = append(out, files...)
		case !workflow.IsFile(workflow.Folder + "/" + info.Name()):
			return nil, fault.New(fault.Invalid,
				"%s: files with tasks end with .yaml, .yml or .json", path)
		default:
			f, err := workflowFile(path)
			if err != nil {
				return nil, err
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// filesBelow reads the files of an archive's folder of definitions (_workflows); the folder can be that one
// itself. A link is refused, as is a file that is none. A folder without files is NotFound.
func filesBelow(folder string) ([]workflow.File, error) {
	definitions := filepath.Join(folder, workflow.Folder)
	if info, err := os.Lstat(definitions); err == nil { // else the folder is that of the definitions
		if info.Mode()&fs.ModeSymlink != 0 {
			return nil, notFollowed(definitions)
		}
		if info.IsDir() {
			folder = definitions
		}
	}

	var out []workflow.File
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !workflow.IsFile(workflow.Folder+"/"+entry.Name()) {
			return err
		}

		if !entry.Type().IsRegular() {
			return notFollowed(path)
		}

		// The parser refuses too many files; it need not get all of them.
		if len(out) > workflow.MaxFiles {
			return filepath.SkipAll // one more than accepted is enough to say so
		}

		f, err := workflowFile(path)
		out = append(out, f)
		return err
	})
	if err != nil {
		return out, err
	}

	if len(out) == 0 {
		return nil, fault.New(fault.NotFound, "%s: there are no files with tasks", folder)
	}
	return out, nil
}

// notFollowed is the error of what the queue would leave out without a word: better here than in a revision
// whose tasks are missing.
func notFollowed(path string) error {
	return fault.New(fault.Invalid,
		"%s is a link, which archives do not follow: its tasks would not be planned; put "+
			"the file itself there", path)
}

// workflowFile reads a file, and no more of it than shows that it is too large: the parser says so.
func workflowFile(path string) (workflow.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return workflow.File{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, workflow.MaxFile+1))
	return workflow.File{Path: filepath.ToSlash(path), Data: data}, err
}
