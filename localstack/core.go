package localstack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// CoreMissing names what this machine lacks for LocalStack's open core, separated by commas, "" if nothing:
// Python 3.13, Java and Maven.
func CoreMissing() string {
	var missing []string
	if python313() == "" {
		missing = append(missing, "Python 3.13")
	}
	for command, name := range map[string]string{"java": "Java", "mvn": "Maven"} {
		if _, err := exec.LookPath(command); err != nil {
			missing = append(missing, name)
		}
	}
	return strings.Join(missing, ", ")
}

// python313 is a Python 3.13, from the path or from pyenv; "" for none.
func python313() string {
	candidates := []string{"python3.13"}
	if out, err := exec.Command("pyenv", "root").Output(); err == nil {
		root := strings.TrimSpace(string(out))
		found, _ := filepath.Glob(filepath.Join(root, "versions", "3.13.*", "bin", "python3.13"))
		candidates = append(candidates, found...)
	}

	for _, c := range candidates {
		// A shim of pyenv is on the path even if its version is not selected.
		if out, err := exec.Command(c, "-c",
			"import sys; print(sys.executable)").Output(); err == nil {
			return strings.TrimSpace(string(out))
		}
	}
	return ""
}

// installCore installs LocalStack's open core and the DynamoDB Local that it uses, unless they are there and
// their lists of packages have not changed since.
func (s *Stack) installCore(ctx context.Context) error {
	if missing := CoreMissing(); missing != "" {
		return fmt.Errorf("LocalStack's open core needs %s", missing)
	}

	if err := s.installDynamoDB(ctx); err != nil {
		return err
	}

	dir, wanted := s.Path(".local", "core"), s.Path("localstack", "core", "requirements.txt")
	return s.Once(filepath.Join(dir, "done"), wanted, func() error {
		s.Say("installing LocalStack's open core (Python) …")
		return s.Venv(ctx, python313(), filepath.Join(dir, "venv"), wanted)
	})
}

// startCore starts LocalStack's open core. Its processes are in its session, so Stop ends them all. All that it
// writes is below the folder of the stack, also what it would keep in the home of the user.
func (s *Stack) startCore() error {
	root := s.State("root")
	for _, dir := range []string{root, s.State("tmp"), s.State("home")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}

	address := fmt.Sprintf("127.0.0.1:%d", s.Port)
	// Settings are those of LocalStack ("Configuration"). Nothing of the environment of this process but PATH is
	// passed on.
	env := []string{"PATH=" + s.Path(".local", "core", "venv", "bin") + ":" + os.Getenv("PATH"),
		"HOME=" + s.State("home"), "TMPDIR=" + s.State("tmp"), "FILESYSTEM_ROOT=" + root,
		"GATEWAY_LISTEN=" + address, "LOCALSTACK_HOST=" + address,
		fmt.Sprintf("EXTERNAL_SERVICE_PORTS_START=%d", s.Port+10),
		fmt.Sprintf("EXTERNAL_SERVICE_PORTS_END=%d", s.Port+60),
		"OVERRIDE_IN_DOCKER=0", "SKIP_SSL_CERT_DOWNLOAD=1", "DISABLE_EVENTS=1", "DNS_ADDRESS=0",
		"LAMBDA_RETRY_BASE_DELAY=1", "SQS_ENDPOINT_STRATEGY=path",
		"PROVIDER_OVERRIDE_DYNAMODB=v2", // streams are DynamoDB Local's own
		"DYNAMODB_LOCAL_LIB=" + s.Path(".local", "dynamodb"), "DYNAMODB_IN_MEMORY=1",
		"LAMBDA_EVENT_SOURCE_MAPPING_POLL_INTERVAL_SEC=0.05",
		"LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_EMPTY_POLL_SEC=1", // else one message a second
		"S3_SKIP_SIGNATURE_VALIDATION=0", "LS_LOG=warning"}
	return s.Detach("core", env, s.Path(".local", "core", "venv", "bin", "python"),
		s.Path("localstack", "core", "start.py"))
}

// coreHealthy reports whether LocalStack answers. It asks for the version: other emulators answer the same path.
func (s *Stack) coreHealthy() bool {
	client := http.Client{Timeout: 2 * time.Second}
	resp, err := client.Get(s.Endpoint() + "/_localstack/health")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var health struct{ Version string }
	return json.NewDecoder(resp.Body).Decode(&health) == nil &&
		strings.HasPrefix(health.Version, "2026.3")
}

// fallbacks returns an error if the emulator only pretended to make a resource of the deployment: it knows no
// resource of this type, and says so in its log alone. Tests on it would then test nothing.
func (s *Stack) fallbacks() error {
	log, err := os.ReadFile(s.State("core.log"))
	if err != nil {
		return err
	}

	for line := range strings.SplitSeq(string(log), "\n") {
		if strings.Contains(line, "deployed as a fallback") ||
			strings.Contains(line, "is not supported but was deployed") {
			return fmt.Errorf("LocalStack only pretended to make a resource: %s", line)
		}
	}
	return nil
}
