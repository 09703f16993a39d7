package seeds

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
)

// T is the test of one seed. What fails ends the seed alone, so that many can run at once.
type T struct {
	testing.TB
	errs []error
	last []func()
}

// Each plays the seeds of a test whose plays fail by their T.
func Each(t *testing.T, play func(t *T, seed uint64)) Played {
	t.Helper()
	return Play(t, func(seed uint64) error { return Try(t, func(t *T) { play(t, seed) }) },
		func(_ uint64, err error) error { return err })
}

// Try runs one play, and returns what failed in it.
func Try(of testing.TB, play func(t *T)) error {
	t := &T{TB: of}
	func() {
		defer func() {
			for _, f := range slices.Backward(t.last) {
				f()
			}
			if r := recover(); r != nil && r != any(t) {
				panic(r)
			}
		}()
		play(t)
	}()
	return errors.Join(t.errs...)
}

// FailNow ends the play.
func (t *T) FailNow() {
	t.Fail()
	panic(t)
}

// Fail lets the play fail.
func (t *T) Fail() {
	if !t.Failed() {
		t.errs = append(t.errs, errors.New("failed"))
	}
}

// Failed reports whether the play has failed.
func (t *T) Failed() bool { return len(t.errs) > 0 }

// Error lets the play fail with a text.
func (t *T) Error(args ...any) { t.errs = append(t.errs, errors.New(fmt.Sprint(args...))) }

// Errorf lets the play fail with a text.
func (t *T) Errorf(format string, args ...any) { t.errs = append(t.errs, fmt.Errorf(format, args...)) }

// Fatal ends the play with a text.
func (t *T) Fatal(args ...any) {
	t.Error(args...)
	t.FailNow()
}

// Fatalf ends the play with a text.
func (t *T) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	t.FailNow()
}

// Cleanup runs f when the play has ended.
func (t *T) Cleanup(f func()) { t.last = append(t.last, f) }

// TempDir is a folder that is removed when the play has ended.
func (t *T) TempDir() string {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
