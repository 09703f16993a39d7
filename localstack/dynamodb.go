package localstack

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// installDynamoDB installs DynamoDB Local; it needs Java and Maven. Maven compares files with sums from the same
// server, so ours are in SHA256SUMS: what is run is what was looked at. A folder that is left from a broken
// installation is removed before.
func (s *Stack) installDynamoDB(ctx context.Context) error {
	lib, pom := s.Path(".local", "dynamodb"), s.Path("localstack", "dynamodb", "pom.xml")
	return s.Once(s.Path(".local", "dynamodb.done"), pom, func() error {
		s.Say("installing DynamoDB Local (Maven) …")
		// Files of another version would fail the comparison below.
		if err := os.RemoveAll(lib); err != nil {
			return err
		}
		_, err := s.Run(ctx, s.Path("localstack", "dynamodb"), os.Environ(), "mvn", "-q", "-B",
			"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+lib)
		if err != nil {
			return err
		}
		return verify(lib, s.Path("localstack", "dynamodb", "SHA256SUMS"))
	})
}

// verify returns an error unless a folder has exactly the files of a list in the form of sha256sum, in the order
// of their names: one more could be loaded as well as one that was changed.
func verify(dir, list string) error {
	want, err := os.ReadFile(list)
	if err != nil {
		return err
	}

	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}

	var got strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&got, "%x  %s\n", sha256.Sum256(data), f.Name())
	}

	if got.String() != string(want) {
		return fmt.Errorf("the files in %s are not those of %s; compare: cd %s && sha256sum *", dir,
			list, dir)
	}
	return nil
}

// DynamoDB installs and starts DynamoDB Local and returns its URL. Its tables are in memory, and end with it. It
// sends nothing to Amazon ("Telemetry in DynamoDB local").
func (s *Stack) DynamoDB(ctx context.Context) (string, error) {
	if err := s.installDynamoDB(ctx); err != nil {
		return "", err
	}

	lib, address := s.Path(".local", "dynamodb"), fmt.Sprintf("127.0.0.1:%d", s.Port)
	err := s.Detach("dynamodb", os.Environ(), "java", "-Xmx1g", "-Djava.library.path="+lib, "-cp",
		lib+"/*",
		"com.amazonaws.services.dynamodbv2.local.main.ServerRunner", "-inMemory",
		"-disableTelemetry",
		"-port", fmt.Sprint(s.Port))
	if err != nil {
		return "", err
	}

	// It listens when its tables can be used.
	err = s.await(ctx, "DynamoDB Local", func() bool {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return "http://" + address, err
}
