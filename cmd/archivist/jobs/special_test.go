package jobs

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"archivist/cmd/archivist/command/commandtest"
)

// TestSubmitSpecialFiles: pipes, sockets and links, also those that lead round in circles, are named, and nothing is
// sent or waited for; so is a file that even root cannot read. Without them the folder is submitted.
func TestSubmitSpecialFiles(t *testing.T) {
	commandtest.EmptyHome(t)
	commandtest.Write(t, "odd/a.txt", "a")
	if err := syscall.Mkfifo("odd/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", "odd/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for name, to := range map[string]string{"odd/loop": "loop", "odd/up": "..", "memory": "/proc/self/mem"} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	for line, says := range map[string][]string{
		"odd": {`"odd/pipe" is not a regular file`, `"odd/socket" is not a regular file`,
			`"odd/loop" is a symbolic link`, `"odd/up" is a symbolic link`, "there are 4 problems; nothing was sent"},
		"odd/loop": {`"odd/loop" cannot be read: too many levels of symbolic links`},
		"odd/pipe": {`"odd/pipe" is not a regular file`},
		"memory":   {`"memory" cannot be read: input/output error; nothing was sent`},
	} {
		u := newUploads(t)
		c := with(t, u.URL)
		code := c.Run("submit " + line + " -c maps")
		for _, s := range says {
			if code != 2 || !strings.Contains(c.Both.String(), s) || len(u.all) > 0 {
				t.Errorf("%s: exit code %d, %d uploads; want %q\n%s", line, code, len(u.all), s, &c.Both)
			}
		}
	}
	u := newUploads(t)
	c := with(t, u.URL)
	c.Want(t, "submit odd -c maps --exclude pipe --exclude socket --exclude loop --exclude up", 0, "")
	if len(u.taken) != 1 {
		t.Errorf("%d submissions", len(u.taken))
	}
}
