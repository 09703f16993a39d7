//go:build !linux

package runner

import "errors"

// Contain is for Linux only: functions run there.
func Contain() (*Sandbox, error) { return nil, errors.New("runner: only Linux can contain tasks") }

func endBelow(pid, looks int) (ended int, all bool) { return 0, true }
