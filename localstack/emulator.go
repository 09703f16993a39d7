package localstack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// Healthy reports whether the local AWS answers, within two seconds, whoever has started it.
func (s *Stack) Healthy() bool {
	if s.Core {
		return s.coreHealthy()
	}
	client := http.Client{Timeout: 2 * time.Second}
	resp, err := client.Get(s.Endpoint() + "/_ministack/health")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// emulator is the name of the local AWS.
func (s *Stack) emulator() string {
	if s.Core {
		return "LocalStack"
	}
	return "MiniStack"
}

// Start starts the local AWS, unless it is up. It outlives this process. One that another checkout, or another
// stack, has started on the same port is an error: its data would be mixed with these.
func (s *Stack) Start(ctx context.Context) error {
	if s.Healthy() {
		if !s.running() {
			return fmt.Errorf("on port %d there is a local AWS that was not started from this folder: stop it there, "+
				"or choose another port", s.Port)
		}
		return nil
	}

	s.Say("starting %s on port %d …", s.emulator(), s.Port)
	// It begins empty: nothing of an earlier one, that may have died, is there.
	if err := os.RemoveAll(s.State("bootstrapped")); err != nil {
		return err
	}

	if s.Core {
		if err := s.startCore(); err != nil {
			return err
		}
		return s.await(ctx, s.emulator(), s.Healthy)
	}

	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" +
		os.TempDir(),
		fmt.Sprintf("GATEWAY_PORT=%d", s.Port), "BIND_HOST=127.0.0.1",
		"AWS_ENDPOINT_URL=" + s.Endpoint(), "LOG_LEVEL=WARNING", fmt.Sprintf("AUTH=%t", s.Enforce)}

	if err := s.Detach("ministack", append(env, s.Env...), s.Python(),
		s.Path("localstack", "emulator.py")); err != nil {
		return err
	}
	return s.await(ctx, s.emulator(), s.Healthy)
}

// running reports whether a process of this stack is alive, by the ids in its folder. Signal 0 only asks.
func (s *Stack) running() bool {
	pids, _ := filepath.Glob(s.State("*.pid"))
	return slices.ContainsFunc(pids, func(file string) bool {
		data, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		pid, err := strconv.Atoi(string(data))
		return err == nil && syscall.Kill(pid, 0) == nil
	})
}

// Stop ends every process of the stack and forgets its state: tables, buckets and logs are gone. It waits for
// the end of the emulator, so that its port is free afterwards. What has ended already is no error.
func (s *Stack) Stop(ctx context.Context) error {
	pids, err := filepath.Glob(s.State("*.pid"))
	if err != nil {
		return err
	}

	running := s.running()
	for _, file := range pids {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}

		pid, err := strconv.Atoi(string(data))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}

		// The session: MiniStack's functions are its children.
		if err := syscall.Kill(-pid, syscall.SIGTERM); err != nil &&
			!errors.Is(err, syscall.ESRCH) {
			return err
		}
	}

	// Without a process of this stack, what answers on the port is not ours to wait for.
	ended := func() bool { return !running || !s.Healthy() }
	if err := s.await(ctx, "the end of "+s.emulator(), ended); err != nil {
		return err
	}
	return os.RemoveAll(s.State())
}
