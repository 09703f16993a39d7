package fetch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"archivist/pkg/kernel/fault"
)

// maxRetryAfter is the longest wait, requested by a server, that Retry makes itself. For a
// longer one it returns the error at once, see AskedToWait: a function that waits costs as
// much as one that works.
const maxRetryAfter = 30 * time.Second

// AskedToWait is the wait that a server requested, if it was too long for Retry; 0 for any
// other error.
func AskedToWait(err error) time.Duration {
	var status *StatusError
	if errors.As(err, &status) && !status.Final() && status.After > maxRetryAfter {
		return status.After
	}
	return 0
}

// Retry calls f until it succeeds, cannot succeed, or the tries are used up. f sends one
// request to url; messages show the url without its secrets. The error is Invalid if
// another try cannot help, else Unavailable. ErrStop and errors with a kind are returned
// unchanged.
func (c *Client) Retry(ctx context.Context, url string, f func() error) error {
	for try := 1; ; try++ {
		err := f()
		if err == nil || fault.Of(err) != "" || errors.Is(err, ErrStop) {
			return err
		}

		if hopeless(err) {
			return &fault.Error{Kind: fault.Invalid, Msg: message(url, err), Err: err}
		}

		if try == c.Tries || AskedToWait(err) > 0 || !c.pause(ctx, err, try) {
			return &fault.Error{
				Kind: fault.Unavailable,
				Msg:  message(url, err) + times(try),
				Err:  err,
			}
		}
	}
}

// hopeless reports whether another try would fail in the same way.
func hopeless(err error) bool {
	var status *StatusError
	var refused *RefusedError
	return errors.As(err, &refused) || errors.As(err, &status) && status.Final()
}

// pause waits before the next try. It returns false if there is not enough time.
func (c *Client) pause(ctx context.Context, err error, tries int) bool {
	d := c.Waits.Delay(tries, c.Jitter)
	var status *StatusError
	if errors.As(err, &status) {
		d = max(d, status.After)
	}
	return ctx.Err() == nil && c.Wait(ctx, d) == nil
}

func times(tries int) string {
	if tries == 1 {
		return ""
	}
	return fmt.Sprintf(" (tried %d times)", tries)
}
