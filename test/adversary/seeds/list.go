package seeds

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// parse reads the seeds of a test from a list. A line that begins with # is a comment.
func parse(from io.Reader, test string) (all []uint64, err error) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) < 4 {
			return nil, fmt.Errorf("not a test, a seed, a commit and what it had found: %s", lines.Text())
		}
		seed, err := strconv.ParseUint(words[1], 10, 64)
		if err != nil {
			return nil, err
		}
		if words[0] == test {
			all = append(all, seed)
		}
	}
	return all, lines.Err()
}
