package fetch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"archivist/pkg/fault"
)

// maxRetryAfter is the longest wait that a server asks for and that is kept here. Who is
// asked to wait longer gets the error at once, see AskedToWait: a function that does
// nothing but wait costs as much as one that works.
const maxRetryAfter = 30 * time.Second

// AskedToWait is how long a server asked to wait before the next try, where that was too
// long to be kept by Retry; 0 in any other error.
func AskedToWait(err error) time.Duration {
	var status *StatusError
	if errors.As(err, &status) && !status.Final() && status.After > maxRetryAfter {
		return status.After
	}
	return 0
}

// Retry does f until it succeeds, it is known to fail again, or the tries are used up.
// f sends one request to url, of which messages show what is not secret. The error is
// Invalid when another try cannot help, else Unavailable; one that has a kind already,
// and ErrStop, are returned as they are.
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
			return &fault.Error{Kind: fault.Unavailable, Msg: message(url, err) + times(try), Err: err}
		}
	}
}

// hopeless reports whether another try has the same end.
func hopeless(err error) bool {
	var status *StatusError
	var refused *RefusedError
	return errors.As(err, &refused) || errors.As(err, &status) && status.Final()
}

// pause waits before the next try. It reports false if there is no time for it.
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
