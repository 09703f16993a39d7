package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/guregu/dynamo/v2"

	"archivist/pkg/kernel/backoff"
	"archivist/pkg/kernel/fault"
)

// answer is the meaning of an error for a request.
type answer int

const (
	final   answer = iota // it will be refused again
	refused               // it was not made; the same request may succeed later
	unknown               // it may have been made
)

// transient classifies an error of DynamoDB's. The SDK retries neither conflicts nor
// cancelled transactions (AWS SDK for Go v2, retry.Standard), so they are retried here, and
// only here. An error that carries a kind was made here, by an earlier decision, and is
// final; so is a row that is not there, or cannot be decoded.
func transient(err error) answer {
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) {
		return cancelledAnswer(cancelled)
	}

	var kind *fault.Error
	var ce *ConditionError
	var damaged *damagedError
	if errors.As(err, &kind) || errors.As(err, &ce) || errors.As(err, &damaged) || isCondition(err) ||
		errors.Is(err, dynamo.ErrNotFound) {
		return final
	}

	var api smithy.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode() {
		case "TransactionConflictException", "ProvisionedThroughputExceededException",
			"ThrottlingException",
			"RequestLimitExceeded":
			return refused
		case "TransactionInProgressException", "InternalServerError", "ServiceUnavailable":
			return unknown
		}
		if api.ErrorFault() == smithy.FaultServer {
			return unknown
		}
		return final
	}
	return unknown // the connection was lost before the response
}

// A condition that failed counts more than a conflict beside it: the same request will fail
// again. Under contention DynamoDB reports some rows as conflicts that it did not get to.
func cancelledAnswer(e *types.TransactionCanceledException) answer {
	found := unknown
	for _, r := range e.CancellationReasons {
		if r.Code == nil {
			continue
		}
		switch *r.Code {
		case "ConditionalCheckFailed", "ValidationError", "ItemCollectionSizeLimitExceeded":
			return final
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			found = refused
		}
	}
	return found
}

// Retries of one request: full jitter under a growing bound. One time budget holds for all
// tries of a request and for settling a lost response, so that it ends before a stage's lease
// does. So lower layers must not retry. All waits together are at most 27 seconds; budget is
// less than the 60 seconds of a short stage's lease.
const (
	maxTries = 12
	tryTime  = 10 * time.Second // of one try without a response
	budget   = 50 * time.Second
)

var waits = backoff.Policy{First: 50 * time.Millisecond, Most: 5 * time.Second}

// retry calls f until its error is final, or tries or time are used up; then the error is an
// Unavailable with the last one inside. f must be safe to repeat after an error whose effect
// is unknown.
func (t *Table) retry(ctx context.Context, what string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	for try := 1; ; try++ {
		err := once(ctx, f)
		if err == nil || transient(err) == final {
			return err
		}

		if ctx.Err() != nil || try == maxTries {
			return &fault.Error{
				Kind: fault.Unavailable,
				Msg: fmt.Sprintf("table: %s: gave up after %d tries: %v",
					what, try, err),
				Err: err,
			}
		}

		if t.Wait(ctx, waits.Delay(try, t.Jitter)) != nil {
			return &fault.Error{
				Kind: fault.Unavailable,
				Msg:  "table: " + what + ": stopped: " + err.Error(),
				Err:  err,
			}
		}
	}
}

// once bounds one try, so that a connection that hangs does not use up the budget.
func once(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	return f(ctx)
}
