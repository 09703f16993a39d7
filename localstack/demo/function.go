package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"archivist/localstack"
	"archivist/pkg/app/inprocess"
	"archivist/pkg/app/inprocess/runtimeapi"
)

// userFunctions starts the functions of an earlier demo, and those that were asked for, which replace earlier
// ones of the same name. One that cannot be started ends the start of the demo.
func (d *Demo) userFunctions(ctx context.Context) error {
	d.functions = &functions{demo: d, all: map[string]*userFunction{}}
	earlier, err := d.functions.load()
	if err != nil {
		return err
	}

	// The later of one name wins.
	for _, f := range slices.Concat(earlier, d.options.Functions) {
		arn, err := d.functions.add(ctx, f)
		if err != nil {
			return fmt.Errorf("the function %s: %w", f.Name, err)
		}
		d.say("The function %s is %s", f.Name, arn)
	}
	return nil
}

// add makes a program a function of the system, in place of one of the same name, and returns its ARN. It runs
// with the environment of the demo and ARCHIVIST_API. The function before is closed only when the new one is
// registered, so that no call finds none. One of Archivist itself is never replaced.
func (l *functions) add(ctx context.Context, f localstack.UserFunction) (arn string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err = localstack.CheckFunctionName(f.Name)
	if err != nil {
		return "", err
	}

	if l.all[f.Name] == nil && slices.Contains(l.demo.system.Functions(), f.Name) {
		return "", fmt.Errorf("a function of Archivist itself is named %s; choose another name", f.Name)
	}

	u := &userFunction{UserFunction: f}
	command, dir, err := l.command(ctx, f)
	if err != nil {
		return "", err
	}

	// A function that is replaced begins a new log.
	u.log, err = file(localstack.FunctionLog(l.demo.state.dir, f.Name))
	if err != nil {
		return "", err
	}

	var out io.Writer = u.log
	if l.demo.options.Verbose {
		out = io.MultiWriter(out, named{name: f.Name, to: l.demo.out})
	}

	u.run = &runtimeapi.Function{
		Name:    f.Name,
		ARN:     inprocess.ARN(f.Name),
		Command: command,
		Dir:     dir,
		Output:  out,
		// The API is that of the demo, not one that the environment of the user names.
		Env: append(os.Environ(), "ARCHIVIST_API="+l.demo.APIURL),
	}

	arn = l.demo.system.Register(f.Name, u.run.Invoke)
	// Registered before the old one is closed: a call finds one of the two.
	if before := l.all[f.Name]; before != nil {
		before.close()
	}

	l.all[f.Name] = u
	return arn, l.save()
}

// command is what is run, and in which folder: a program that is built of a folder, or a command of a shell. A
// folder has precedence over a command of its name.
func (l *functions) command(ctx context.Context,
	f localstack.UserFunction) (command []string, dir string, err error) {
	folder := f.Command
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(f.Dir, folder)
	}

	info, err := os.Stat(folder)
	// A name of nothing is a command, such as "python3 words.py".
	if err != nil || !info.IsDir() {
		return []string{"sh", "-c", f.Command}, f.Dir, nil
	}

	// It is built beside its final name: a build that fails leaves the program as it is, and the one before may
	// be running.
	program := l.demo.state.path("functions", f.Name)
	build := exec.CommandContext(ctx, "go", "build", "-tags", "lambda.norpc", "-o", program+".new",
		".")
	build.Dir, build.Env = folder, append(os.Environ(), "CGO_ENABLED=0")
	said, err := build.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, "", errors.New("a folder is built with Go, which was not found; name a command in its place")
	}

	if err != nil {
		return nil, "", fmt.Errorf("go build in %s: %w\n%s", folder, err, bytes.TrimSpace(said))
	}
	return []string{program}, folder, os.Rename(program+".new", program) // the one before may be running
}

// list is the file that says which functions a demo with --keep has: what was asked for, not what was built.
func (l *functions) list() string { return l.demo.state.path("functions.json") }

// save writes the list, if the state is kept; the file is replaced as a whole.
func (l *functions) save() error {
	if !l.demo.state.kept {
		return nil
	}

	var all []localstack.UserFunction
	for _, name := range slices.Sorted(maps.Keys(l.all)) {
		all = append(all, l.all[name].UserFunction)
	}

	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}

	err = os.WriteFile(l.list()+".new", data, 0o600)
	if err != nil {
		return err
	}
	return os.Rename(l.list()+".new", l.list())
}

// load reads the list of an earlier demo; none is empty.
func (l *functions) load() (all []localstack.UserFunction, err error) {
	data, err := os.ReadFile(l.list())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(data, &all)
}

// close ends the processes of all functions.
func (l *functions) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range l.all {
		u.close()
	}
}

// close ends the process of a function, and then closes the file to which it writes.
func (u *userFunction) close() {
	u.run.Close()
	_ = u.log.Close()
}

// named writes lines with a name before them, as several functions share the terminal.
type named struct {
	name string
	to   io.Writer
}

// Write writes whole lines.
func (n named) Write(lines []byte) (int, error) {
	text := strings.ReplaceAll(strings.TrimSuffix(string(lines), "\n"), "\n", "\n"+n.name+" | ")
	_, err := fmt.Fprintf(n.to, "%s | %s\n", n.name, text)
	return len(lines), err
}
