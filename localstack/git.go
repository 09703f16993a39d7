package localstack

import (
	"context"
	"errors"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// GitHandler serves the repositories below a folder by smart HTTP ("gitprotocol-http"), to read and to push to,
// to everybody who reaches it: so only on loopback. It runs the program that comes with Git (git-http-backend).
// The error is that Git is not installed.
func GitHandler(folder string) (http.Handler, error) {
	programs, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return nil, errors.New("git is not installed; the sample of archives needs it")
	}
	return &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(programs)),
		"git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + folder, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=local",
			"GIT_CONFIG_NOSYSTEM=1", "HOME=" + folder}}, nil
}

// Repository is a working copy and the bare repository to which its commits are pushed. The branch is main.
type Repository struct {
	Bare, Work string // folders
}

// NewRepository makes a repository at a path that ends with .git, with a working copy beside it that ends with
// .work, unless that is there.
func NewRepository(ctx context.Context, bare string) (*Repository, error) {
	r := &Repository{Bare: bare, Work: strings.TrimSuffix(bare, ".git") + ".work"}
	_, err := os.Stat(r.Work)
	if err == nil {
		return r, nil
	}

	_, err = git(ctx, "", "init", "-q", "--bare", "-b", "main", r.Bare)
	if err != nil {
		return r, err
	}

	// Pushing by HTTP is refused by default. For whom it is served has been decided by the server.
	_, err = git(ctx, r.Bare, "config", "http.receivepack", "true")
	if err != nil {
		return r, err
	}

	_, err = git(ctx, "", "clone", "-q", r.Bare, r.Work)
	return r, err
}

// Revisions is the number of commits of the branch main by first parents, which is the number of its newest
// revision; 0 without any.
func (r *Repository) Revisions(ctx context.Context) (int64, error) {
	text, err := git(ctx, r.Bare, "rev-list", "--count", "--first-parent", "--all")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// Pull takes over what others have pushed. It fails if there are commits here that were not pushed.
func (r *Repository) Pull(ctx context.Context) error {
	_, err := git(ctx, r.Work, "pull", "-q", "--ff-only", "origin", "main")
	return err
}

// Commit writes files, by their paths with slashes, commits them and pushes the commit. It returns its hash.
// There is a commit also if nothing has changed.
func (r *Repository) Commit(ctx context.Context, message string,
	files map[string]string) (hash string, err error) {
	// In any order: the files of one commit do not depend on each other.
	for path, text := range files {
		at := filepath.Join(r.Work, filepath.FromSlash(path))
		err = os.MkdirAll(filepath.Dir(at), 0o755)
		if err != nil {
			return "", err
		}

		err = os.WriteFile(at, []byte(text), 0o644)
		if err != nil {
			return "", err
		}
	}

	for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "--allow-empty", "-m", message},
		{"push", "-q", "origin", "HEAD:main"}} {
		_, err = git(ctx, r.Work, args...)
		if err != nil {
			return "", err
		}
	}
	return git(ctx, r.Work, "rev-parse", "HEAD")
}

// git runs git without the settings of the machine and of the user, which could sign commits or add hooks, and
// returns what it prints, without blanks around it. The error has what git says.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Sample", "GIT_AUTHOR_EMAIL=sample@example.org",
		"GIT_COMMITTER_NAME=Sample", "GIT_COMMITTER_EMAIL=sample@example.org")

	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", errors.New("git " + strings.Join(args, " ") + ": " +
			strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}
