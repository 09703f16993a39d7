package localstack

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// functionName is what Lambda takes as a name (API reference, "CreateFunction"), without versions and ARNs. It
// is also safe as the name of a file.
var functionName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// CheckFunctionName fails if Lambda does not take a name for a function, with what it takes.
func CheckFunctionName(name string) error {
	if functionName.MatchString(name) {
		return nil
	}
	return fmt.Errorf("%q cannot be the name of a function; use letters, digits, - and _, 64 at most", name)
}

// Function builds the Go program in a folder and makes it a function on the local AWS, beside those
// of the system: somebody's own, with a role that may do nothing. A function of this name gets the
// new code. It returns the function's ARN.
func (s *Stack) Function(ctx context.Context, name, folder string,
	env map[string]string) (arn string, err error) {
	err = CheckFunctionName(name)
	if err != nil {
		return "", err
	}

	code, err := s.zipped(ctx, folder)
	if err != nil {
		return "", err
	}

	functions := lambda.New(lambda.Options{
		Region:       Region,
		BaseEndpoint: aws.String(s.Endpoint()),
		Credentials:  Root,
	})

	// The new code is in use only when the update has ended.
	waiter := lambda.NewFunctionUpdatedV2Waiter(functions)
	get := &lambda.GetFunctionInput{FunctionName: &name}
	// It is asked for an update first: what is there is the usual case, and no list has to be read.
	known, err := functions.UpdateFunctionCode(ctx,
		&lambda.UpdateFunctionCodeInput{FunctionName: &name, ZipFile: code})
	if err == nil {
		return aws.ToString(known.FunctionArn), waiter.Wait(ctx, get, time.Minute)
	}

	// Any other error is that of the update.
	var missing *types.ResourceNotFoundException
	if !errors.As(err, &missing) {
		return "", err
	}

	role, err := s.role(ctx, name)
	if err != nil {
		return "", err
	}

	made, err := functions.CreateFunction(ctx, &lambda.CreateFunctionInput{
		FunctionName: &name,
		Role:         &role,
		Runtime:      types.RuntimeProvidedal2023,
		Handler:      aws.String("bootstrap"),
		Timeout:      aws.Int32(5),
		Code:         &types.FunctionCode{ZipFile: code},
		Environment:  &types.Environment{Variables: env},
	})
	if err != nil {
		return "", err
	}
	return aws.ToString(made.FunctionArn),
		lambda.NewFunctionActiveV2Waiter(functions).Wait(ctx, get, time.Minute)
}

// zipped is the zip file of a Go program, as Lambda takes it ("Deploy Go Lambda functions with .zip file
// archives"): one file, bootstrap, which needs no libraries of the system.
func (s *Stack) zipped(ctx context.Context, folder string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "function-")
	if err != nil {
		return nil, err
	}

	defer os.RemoveAll(dir)
	built := filepath.Join(dir, "bootstrap")
	if _, err := s.Run(ctx, folder, append(os.Environ(), "CGO_ENABLED=0"), "go", "build", "-tags",
		"lambda.norpc",
		"-o", built, "."); err != nil {
		return nil, err
	}

	program, err := os.ReadFile(built)
	if err != nil {
		return nil, err
	}

	var code bytes.Buffer
	z := zip.NewWriter(&code)
	err = errors.Join(addProgram(z, program), z.Close())
	return code.Bytes(), err
}

// addProgram adds the program that the runtime starts, without compression. It has the mode of an executable
// file, which Unix keeps in the upper 16 bits of the external attributes.
func addProgram(z *zip.Writer, program []byte) error {
	w, err := z.CreateHeader(&zip.FileHeader{
		Name:          "bootstrap",
		Method:        zip.Store,
		ExternalAttrs: 0o755 << 16,
	})
	if err != nil {
		return err
	}
	_, err = w.Write(program)
	return err
}

// role is the ARN of the role of a function, which is made if it is not there. It has no policy but the one by
// which Lambda may take it: the function may call nothing.
func (s *Stack) role(ctx context.Context, name string) (string, error) {
	roles := iam.New(iam.Options{
		Region:       Region,
		BaseEndpoint: aws.String(s.Endpoint()),
		Credentials:  Root,
	})

	trust := `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole",
		"Principal": {"Service": "lambda.amazonaws.com"}}]}`
	// Created first, read only if it is there: both are one call.
	made, err := roles.CreateRole(ctx,
		&iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: &trust})
	if err == nil {
		return aws.ToString(made.Role.Arn), nil
	}

	var there *iamtypes.EntityAlreadyExistsException
	if !errors.As(err, &there) {
		return "", err
	}

	known, err := roles.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
	if err != nil {
		return "", err
	}
	return aws.ToString(known.Role.Arn), nil
}
