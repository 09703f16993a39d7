package inprocess

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// message is a message of a queue. It is only changed with the lock of its queue held;
// receivers get copies.
type message struct {
	id, body    string
	attributes  map[string]types.MessageAttributeValue
	sent, first time.Time // first: when it was received first
	visible     time.Time // from when on it can be received
	received    int
}

// receipt is the receipt handle of the last receive. An earlier one is accepted, too.
func (m *message) receipt() string { return m.id + "#" + strconv.Itoa(m.received) }

// md5 is the digest of the body, which the SDK compares.
func (m *message) md5() string {
	sum := md5.Sum([]byte(m.body))
	return hex.EncodeToString(sum[:])
}

// system are the attributes that SQS gives a message.
func (m *message) system() map[string]string {
	ms := func(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
	return map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.received),
		"SentTimestamp": ms(m.sent),
		"SenderId":      account, "ApproximateFirstReceiveTimestamp": ms(m.first)}
}

// queue is a standard queue. Of the messages that are visible, those that were sent first come
// first; SQS promises no order.
type queue struct {
	name       string
	visibility time.Duration // after which a message that was received comes back
	retention  time.Duration
	dead       *queue // for messages that were received most times, or nil
	most       int

	mu       sync.Mutex
	messages []*message // in the order in which they were sent
	// changed is closed at each change, and replaced.
	changed chan struct{}
	losing  int // the next messages that are lost
	lastID  int
	// repeating are the next messages that come twice.
	repeating int
}

// newQueue makes a queue without dead letters.
func newQueue(name string, visibility, retention time.Duration) *queue {
	return &queue{
		name:       name,
		visibility: visibility,
		retention:  retention,
		changed:    make(chan struct{}),
	}
}

func (q *queue) arn() string { return arn("sqs", q.name) }

// QueueURL is the URL of a queue by its name.
func QueueURL(name string) string {
	return "https://sqs." + region + ".amazonaws.com/" + account + "/" + name
}

// notify wakes who waits for messages. The caller holds the lock. All of them look again, and
// those that find nothing wait on.
func (q *queue) notify() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// send puts a message on the queue. A message that is lost has an id like any other, so that
// its sender notices nothing.
func (q *queue) send(body string, attributes map[string]types.MessageAttributeValue,
	delay time.Duration) *message {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lastID++
	now := time.Now()
	m := &message{
		id:         q.name + "-" + strconv.Itoa(q.lastID),
		body:       body,
		attributes: attributes,
		sent:       now,
		visible:    now.Add(delay),
	}

	if q.losing > 0 {
		q.losing--
		return m
	}

	q.messages = append(q.messages, m)
	if q.repeating > 0 {
		q.repeating--
		again := *m
		again.id += "-again"
		q.messages = append(q.messages, &again)
	}

	q.notify()
	return m
}

// addDead puts a message of another queue on this one. It keeps its age ("Amazon SQS dead-letter
// queues"). Its receive count goes on.
func (q *queue) addDead(m *message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages = append(q.messages, m)
	q.notify()
}

// receive takes messages that are visible, at most n. It waits for the first until the end of
// wait or of ctx. It is nil at the end of ctx, and may be empty at the end of wait.
func (q *queue) receive(ctx context.Context, n int, wait, visibility time.Duration) []message {
	end := time.Now().Add(wait)
	for {
		found, next, changed := q.take(n, visibility)
		if len(found) > 0 || !time.Now().Before(end) {
			return found
		}

		if next.IsZero() || next.After(end) {
			next = end
		}

		timer := time.NewTimer(time.Until(next))
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}

		timer.Stop()
	}
}

// take takes what is visible now. next is when a message becomes visible, zero if there is
// none. A message that was received most times already goes to the dead letters instead of
// coming once more, as in SQS: it is moved when it would be received. changed is what was
// valid at that moment, so no change in between is missed.
func (q *queue) take(n int,
	visibility time.Duration) (found []message, next time.Time, changed <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	q.expire(now)
	var keep []*message
	for i, m := range q.messages {
		switch {
		case len(found) == n:
			return found, now, q.rest(keep, i)
		case m.visible.After(now):
			if next.IsZero() || m.visible.Before(next) {
				next = m.visible
			}
		case q.dead != nil && m.received >= q.most:
			q.dead.addDead(m)
			continue
		default:
			m.received++
			if m.first.IsZero() {
				m.first = now
			}
			m.visible = now.Add(visibility)
			found = append(found, *m)
		}
		keep = append(keep, m)
	}
	return found, next, q.rest(keep, len(q.messages))
}

// rest keeps the messages that were looked at and stay, and those from i on. The caller holds
// the lock.
func (q *queue) rest(keep []*message, i int) <-chan struct{} {
	q.messages = append(keep, q.messages[i:]...)
	return q.changed
}

// expire removes what is too old. The caller holds the lock. A message in flight expires,
// too.
func (q *queue) expire(now time.Time) {
	q.messages = slices.DeleteFunc(q.messages,
		func(m *message) bool { return now.Sub(m.sent) > q.retention })
}

// find is the message of a receipt, nil if it is gone. The caller holds the lock.
func (q *queue) find(receipt string) *message {
	id, _, _ := strings.Cut(receipt, "#")
	for _, m := range q.messages {
		if m.id == id {
			return m
		}
	}
	return nil
}

// remove deletes a received message. It is no error if the message is gone, or was received
// again since.
func (q *queue) remove(receipt string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.find(receipt)
	q.messages = slices.DeleteFunc(q.messages, func(x *message) bool { return x == m })
}

// hide makes a received message visible after a time, and reports whether it is in flight. 0
// makes it visible at once.
func (q *queue) hide(receipt string, d time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	m := q.find(receipt)
	if m == nil || m.received == 0 || !m.visible.After(now) {
		return false
	}
	m.visible = now.Add(d)
	q.notify()
	return true
}

// lose loses the next n messages that are sent.
func (q *queue) lose(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.losing += n
}

// repeat lets the next n messages come twice.
func (q *queue) repeat(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.repeating += n
}

// purge deletes all messages.
func (q *queue) purge() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages = nil
}

// counts are how many messages can be received, are in flight, and are delayed. They are
// attributes as GetQueueAttributes returns them, with some of the queue itself.
func (q *queue) counts() map[string]string {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	q.expire(now)
	visible, hidden, delayed := 0, 0, 0
	for _, m := range q.messages {
		switch {
		case !m.visible.After(now):
			visible++
		case m.received > 0:
			hidden++
		default:
			delayed++
		}
	}
	return map[string]string{"ApproximateNumberOfMessages": strconv.Itoa(visible),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(hidden),
		"ApproximateNumberOfMessagesDelayed":    strconv.Itoa(delayed), "QueueArn": q.arn(),
		"VisibilityTimeout":      strconv.Itoa(int(q.visibility.Seconds())),
		"MessageRetentionPeriod": strconv.Itoa(int(q.retention.Seconds()))}
}

// wire is the message as a client receives it.
func (m message) wire() types.Message {
	return types.Message{
		MessageId:         &m.id,
		Body:              &m.body,
		ReceiptHandle:     aws.String(m.receipt()),
		MD5OfBody:         aws.String(m.md5()),
		Attributes:        m.system(),
		MessageAttributes: m.attributes,
	}
}

// await waits until something of the queue changes, or for the end of ctx. It is for a
// mapping that is turned off.
func (q *queue) await(ctx context.Context) {
	q.mu.Lock()
	changed := q.changed
	q.mu.Unlock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
}
