package terminal_test

import (
	"os"
	"strconv"

	"archivist/pkg/kernel/terminal"
)

type file struct {
	path string
	size int64
}

// A table is columns that fit for people, and rows for programs.
func ExampleTable() {
	files := []file{{"producer/map-of-ghent-with-the-suburbs.tif", 3 << 20}, {"producer/notes.txt", 120}}
	path := terminal.Column[file]{Title: "path", Text: func(f file) string { return f.path }, Share: 1}
	size := terminal.Column[file]{Title: "size", Text: func(f file) string { return terminal.Size(f.size) },
		Raw: func(f file) string { return strconv.FormatInt(f.size, 10) }}

	out := terminal.NewScreen(os.Stdout, false)
	terminal.Table(terminal.Page{Writer: out, Width: 40}, files, path, size)
	terminal.Table(terminal.Page{Writer: out}, files, size, path)
	// Output:
	// PATH                             SIZE
	// producer/map-of-ghent-with-the…  3.0 MiB
	// producer/notes.txt               120 B
	// 3145728	producer/map-of-ghent-with-the-suburbs.tif
	// 120	producer/notes.txt
}
