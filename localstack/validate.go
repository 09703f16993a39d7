package localstack

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// validate runs a validator that is not ours over storage roots, with every digest. It prints the number of objects.
const validate = `
import sys, ocfl
objects = 0
for folder in sys.argv[1:]:
    root = ocfl.StorageRoot(root=folder)
    valid = root.validate(validate_objects=True, check_digests=True, log_warnings=True)
    if not valid or root.errors or root.good_objects != root.num_objects:
        sys.exit(f"{folder}: {root.good_objects} of {root.num_objects} objects are valid: {root.errors} {root.log}")
    objects += root.num_objects
print(objects)
`

// Validate has ocfl-py validate the OCFL storage roots in folders, for which [Stack.InstallPython] must have been
// called. It returns the number of their objects, which are all valid; the error says what is not.
func (s *Stack) Validate(ctx context.Context, folders ...string) (objects int, err error) {
	var log strings.Builder
	validator := exec.CommandContext(ctx, s.Python(), append([]string{"-c", validate}, folders...)...)
	validator.Stderr = &log
	said, err := validator.Output()
	if err != nil {
		return 0, fmt.Errorf("the validator ends with %w\n%s", err, &log)
	}
	return strconv.Atoi(strings.TrimSpace(string(said)))
}
