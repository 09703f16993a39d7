package audio

import (
	"errors"
	"fmt"
	"io"

	"archivist/pkg/kernel/fault"
)

// invalid is the error of a file that is not as it should be.
func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// guarded calls a decoder of a library. What a damaged file can make it do, panics included, is
// an error of the file.
func guarded(format string, call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = invalid("the %s file is damaged: its decoder stops with %v", format, p)
		}
	}()
	err = call()
	switch {
	case err == nil, err == io.EOF, fault.Of(err) != "":
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return invalid("the %s file is cut off: %w", format, err)
	}
	return invalid("the %s file is damaged: %w", format, err)
}

// ended is the error of a file that is shorter than it says.
func ended(format string, got, want uint64, what string) error {
	return invalid("the %s file is cut off: %s", format, fmt.Sprintf("%d of %d %s", got, want, what))
}

// cutOff is the error of a file that ends where it may not; an error of the disk stays itself.
func cutOff(format, where string, err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return invalid("the %s file is cut off %s", format, where)
	}
	return err
}
