package localstack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// verdicts runs the same validator over single objects, which may be invalid. It prints a line of JSON for each.
const verdicts = `
import json, sys
from ocfl.validator import Validator
for folder in sys.argv[1:]:
    validator = Validator(check_digests=True)
    valid = validator.validate_object(folder)
    errors = [code for code in sorted(validator.log.codes) if code[0] == "E"]
    print(json.dumps({"valid": valid, "errors": errors, "says": str(validator)}))
`

// Verdict is what a validator that is not ours says of an object.
type Verdict struct {
	Valid  bool     `json:"valid"`
	Errors []string `json:"errors,omitempty"` // codes of the specification, e.g. E092, each once, in order
	Says   string   `json:"says,omitempty"`   // the same in words
}

// Validate has ocfl-py validate the OCFL storage roots in folders, for which [Stack.InstallPython] must have been
// called. It returns the number of their objects, which are all valid; the error says what is not.
func (s *Stack) Validate(ctx context.Context, folders ...string) (objects int, err error) {
	said, err := s.ask(ctx, validate, folders)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(said)))
}

// Verdicts has ocfl-py judge the OCFL objects in folders, one for each, in their order. An object that is not valid is
// no error. It needs what [Stack.Validate] needs.
func (s *Stack) Verdicts(ctx context.Context, folders ...string) (all []Verdict, err error) {
	said, err := s.ask(ctx, verdicts, folders)
	if err != nil {
		return nil, err
	}

	for lines := json.NewDecoder(bytes.NewReader(said)); ; {
		var v Verdict
		err := lines.Decode(&v)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	if len(all) != len(folders) {
		return nil, fmt.Errorf("the validator has %d verdicts of %d objects", len(all), len(folders))
	}
	return all, nil
}

// ask runs a program of the validator over folders, and returns what it prints.
func (s *Stack) ask(ctx context.Context, program string, folders []string) (said []byte, err error) {
	var log strings.Builder
	validator := exec.CommandContext(ctx, s.Python(), append([]string{"-c", program}, folders...)...)
	validator.Stderr = &log
	said, err = validator.Output()
	if err != nil {
		return nil, fmt.Errorf("the validator ends with %w\n%s", err, &log)
	}
	return said, nil
}
