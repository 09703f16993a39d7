package localstack

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"
)

// installDynamoDB installs DynamoDB Local; it needs Java and Maven.
func (s *Stack) installDynamoDB(ctx context.Context) error {
	lib, pom := s.path(".local", "dynamodb"), s.path("localstack", "dynamodb", "pom.xml")
	if err := os.MkdirAll(lib, 0o755); err != nil {
		return err
	}
	return s.once(s.path(".local", "dynamodb.done"), pom, func() error {
		s.say("installing DynamoDB Local (Maven) …")
		_, err := s.run(ctx, s.path("localstack", "dynamodb"), os.Environ(), "mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+lib)
		return err
	})
}

// DynamoDB installs and starts DynamoDB Local and returns its URL.
func (s *Stack) DynamoDB(ctx context.Context) (string, error) {
	if err := s.installDynamoDB(ctx); err != nil {
		return "", err
	}
	lib, address := s.path(".local", "dynamodb"), fmt.Sprintf("127.0.0.1:%d", s.Port)
	err := s.Detach("dynamodb", os.Environ(), "java", "-Xmx1g", "-Djava.library.path="+lib, "-cp", lib+"/*", "com.amazonaws.services.dynamodbv2.local.main.ServerRunner", "-inMemory", "-port", fmt.Sprint(s.Port))
	if err != nil {
		return "", err
	}
	err = s.await(ctx, "DynamoDB Local", func() bool {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return "http://" + address, err
}
