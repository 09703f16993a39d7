package inprocess

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// queues are the queues of an account, by name.
type queues struct {
	mu  sync.Mutex
	all map[string]*queue
}

// add makes a queue known, in place of one of the same name.
func (s *queues) add(q *queue) *queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[q.name] = q
	return q
}

// named is a queue by its name, its URL or its ARN.
func (s *queues) named(text string) (*queue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.all[text[strings.LastIndexAny(text, "/:")+1:]]
	if q == nil {
		return nil, &types.QueueDoesNotExist{Message: aws.String("there is no queue " + text)}
	}
	return q, nil
}

// handle adds the operations of SQS.
func (s *queues) handle(o operations) {
	op(o, s.createQueue)
	op(o, s.deleteQueue)
	op(o, s.listQueues)
	op(o, s.getQueueURL)
	op(o, s.getAttributes)
	op(o, s.purge)
	op(o, s.send)
	op(o, s.sendBatch)
	op(o, s.receive)
	op(o, s.delete)
	op(o, s.changeVisibility)
}

// createQueue is CreateQueue, for queues of tests. Only two attributes are supported; their
// defaults are SQS's. An existing queue of the name is replaced.
func (s *queues) createQueue(_ context.Context,
	in *sqs.CreateQueueInput) (*sqs.CreateQueueOutput, error) {
	times := map[string]time.Duration{"VisibilityTimeout": 30 * time.Second,
		"MessageRetentionPeriod": 96 * time.Hour}
	for name, value := range in.Attributes {
		n, err := strconv.Atoi(value)
		if times[name] == 0 || err != nil {
			return nil, &types.InvalidAttributeName{Message: aws.String(name +
				" is not supported in the process")}
		}
		times[name] = time.Duration(n) * time.Second
	}

	s.add(newQueue(*in.QueueName, times["VisibilityTimeout"], times["MessageRetentionPeriod"]))
	return &sqs.CreateQueueOutput{QueueUrl: aws.String(QueueURL(*in.QueueName))}, nil
}

// deleteQueue is DeleteQueue. What has the queue already, such as a mapping, keeps it.
func (s *queues) deleteQueue(_ context.Context,
	in *sqs.DeleteQueueInput) (*sqs.DeleteQueueOutput, error) {
	q, err := s.named(*in.QueueUrl)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, q.name)
	return &sqs.DeleteQueueOutput{}, nil
}

// listQueues is ListQueues, in the order of the names, on one page.
func (s *queues) listQueues(_ context.Context,
	in *sqs.ListQueuesInput) (*sqs.ListQueuesOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &sqs.ListQueuesOutput{}
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		if strings.HasPrefix(name, aws.ToString(in.QueueNamePrefix)) {
			out.QueueUrls = append(out.QueueUrls, QueueURL(name))
		}
	}
	return out, nil
}

// getQueueURL is GetQueueUrl.
func (s *queues) getQueueURL(_ context.Context,
	in *sqs.GetQueueUrlInput) (*sqs.GetQueueUrlOutput, error) {
	q, err := s.named(*in.QueueName)
	if err != nil {
		return nil, err
	}
	return &sqs.GetQueueUrlOutput{QueueUrl: aws.String(QueueURL(q.name))}, nil
}

// getAttributes is GetQueueAttributes, with all that there are, whichever are asked for.
func (s *queues) getAttributes(_ context.Context,
	in *sqs.GetQueueAttributesInput) (*sqs.GetQueueAttributesOutput, error) {
	q, err := s.named(*in.QueueUrl)
	if err != nil {
		return nil, err
	}
	out := &sqs.GetQueueAttributesOutput{Attributes: q.counts()}
	if q.dead != nil {
		out.Attributes["RedrivePolicy"] = fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, q.dead.arn(),
			q.most)
	}
	return out, nil
}

// purge is PurgeQueue; it takes effect at once.
func (s *queues) purge(_ context.Context, in *sqs.PurgeQueueInput) (*sqs.PurgeQueueOutput, error) {
	q, err := s.named(*in.QueueUrl)
	if err != nil {
		return nil, err
	}
	q.purge()
	return &sqs.PurgeQueueOutput{}, nil
}

// largest is the largest message in bytes, with its attributes ("Amazon SQS message quotas").
const largest = 1 << 20

// checkMessage refuses what SQS refuses for its size.
func checkMessage(body *string, attributes map[string]types.MessageAttributeValue) error {
	size := len(aws.ToString(body))
	for name, v := range attributes {
		size += len(name) + len(aws.ToString(v.DataType)) + len(aws.ToString(v.StringValue)) + len(v.BinaryValue)
	}
	if size == 0 || size > largest {
		return &types.InvalidMessageContents{
			Message: aws.String(fmt.Sprintf("%d bytes; expected 1 to %d", size, largest))}
	}
	return nil
}

// send is SendMessage.
func (s *queues) send(_ context.Context, in *sqs.SendMessageInput) (*sqs.SendMessageOutput, error) {
	q, err := s.named(*in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if err := checkMessage(in.MessageBody, in.MessageAttributes); err != nil {
		return nil, err
	}
	m := q.send(*in.MessageBody, in.MessageAttributes, seconds(in.DelaySeconds))
	return &sqs.SendMessageOutput{MessageId: &m.id, MD5OfMessageBody: aws.String(m.md5())}, nil
}

// seconds is a number of seconds in a request.
func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// sendBatch is SendMessageBatch. A message that is refused fails by itself; the total size is
// not checked.
func (s *queues) sendBatch(_ context.Context,
	in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
	q, err := s.named(*in.QueueUrl)
	if err != nil {
		return nil, err
	}

	out := &sqs.SendMessageBatchOutput{}
	if len(in.Entries) == 0 || len(in.Entries) > 10 {
		return nil, &types.TooManyEntriesInBatchRequest{}
	}

	for _, e := range in.Entries {
		if err := checkMessage(e.MessageBody, e.MessageAttributes); err != nil {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{
				Id:          e.Id,
				SenderFault: true,
				Code:        aws.String("InvalidMessageContents"),
				Message:     aws.String(err.Error()),
			})
			continue
		}

		m := q.send(*e.MessageBody, e.MessageAttributes, seconds(e.DelaySeconds))
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{
			Id:               e.Id,
			MessageId:        &m.id,
			MD5OfMessageBody: aws.String(m.md5()),
		})
	}
	return out, nil
}

// receive is ReceiveMessage. Message attributes are always returned.
func (s *queues) receive(ctx context.Context,
	in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
	q, err := s.named(*in.QueueUrl)
	if err != nil {
		return nil, err
	}

	visibility := cmp.Or(seconds(in.VisibilityTimeout), q.visibility)
	out := &sqs.ReceiveMessageOutput{}
	for _, m := range q.receive(ctx, max(1, int(in.MaxNumberOfMessages)),
		seconds(in.WaitTimeSeconds), visibility) {
		out.Messages = append(out.Messages, m.wire())
	}
	return out, ctx.Err()
}

// delete is DeleteMessage.
func (s *queues) delete(_ context.Context,
	in *sqs.DeleteMessageInput) (*sqs.DeleteMessageOutput, error) {
	q, err := s.named(*in.QueueUrl)
	if err != nil {
		return nil, err
	}
	q.remove(*in.ReceiptHandle)
	return &sqs.DeleteMessageOutput{}, nil
}

// changeVisibility is ChangeMessageVisibility.
func (s *queues) changeVisibility(_ context.Context, in *sqs.ChangeMessageVisibilityInput) (
	*sqs.ChangeMessageVisibilityOutput, error) {
	q, err := s.named(*in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if !q.hide(*in.ReceiptHandle, seconds(in.VisibilityTimeout)) {
		return nil, &types.MessageNotInflight{Message: aws.String("the message is not in flight")}
	}
	return &sqs.ChangeMessageVisibilityOutput{}, nil
}
