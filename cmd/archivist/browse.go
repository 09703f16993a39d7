package main

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
)

// browse opens a URL in the browser of the user. Nobody waits for the browser. There is none in a
// session of SSH: it would open elsewhere, or as text.
func browse(url string) error {
	command := []string{"xdg-open", url}
	switch runtime.GOOS {
	case "darwin":
		command[0] = "open"
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler", url}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return errors.New("there is no display")
		}
	}
	if os.Getenv("SSH_CONNECTION") != "" {
		return errors.New("this is a session of SSH")
	}

	c := exec.Command(command[0], command[1:]...)
	if err := c.Start(); err != nil {
		return err
	}
	go func() { _ = c.Wait() }() // so that it does not stay as a dead process
	return nil
}
