package tabletest

import (
	"maps"
	"math/big"
	"regexp"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/kernel/table"
)

// plan is what one action of a write would do. checkOnly is set for an action that writes
// nothing. new is nil for a removal.
type plan struct {
	key       table.Key
	old, new  Item
	holds     bool
	checkOnly bool
}

// prepare evaluates one action against the table, and changes nothing. The error is one of
// the request (ValidationException), whatever the rows are; that the condition does not hold
// is no error here.
func (f *Fake) prepare(w types.TransactWriteItem) (plan, error) {
	var e expr
	var p plan
	var keyed Item
	var update *string
	switch {
	case w.Put != nil:
		keyed, p.new = w.Put.Item, maps.Clone(w.Put.Item)
		e = expr{
			names:  w.Put.ExpressionAttributeNames,
			values: w.Put.ExpressionAttributeValues,
			text:   w.Put.ConditionExpression,
		}
	case w.Delete != nil:
		keyed = w.Delete.Key
		e = expr{
			names:  w.Delete.ExpressionAttributeNames,
			values: w.Delete.ExpressionAttributeValues,
			text:   w.Delete.ConditionExpression,
		}
	case w.ConditionCheck != nil:
		keyed, p.checkOnly = w.ConditionCheck.Key, true
		e = expr{
			names:  w.ConditionCheck.ExpressionAttributeNames,
			values: w.ConditionCheck.ExpressionAttributeValues,
			text:   w.ConditionCheck.ConditionExpression,
		}
	case w.Update != nil:
		keyed, update = w.Update.Key, w.Update.UpdateExpression
		e = expr{
			names:  w.Update.ExpressionAttributeNames,
			values: w.Update.ExpressionAttributeValues,
			text:   w.Update.ConditionExpression,
		}
	default:
		return p, invalid("an action without content")
	}

	var err error
	if p.key, err = keyOf(keyed); err != nil {
		return p, err
	}

	p.old = f.get(p.key)
	if p.holds, err = e.condition(p.old); err != nil {
		return p, err
	}

	if update != nil { // an invalid expression is refused whether or not the condition holds
		if p.new, err = e.update(*update, p.old, keyed); err != nil {
			return p, err
		}
	}

	for _, name := range []string{"place", "ranking", "shelf", "since"} {
		if v, ok := p.new[name]; ok && str(Item{name: v}, name) == "" {
			return p, invalid("the index key %s is empty or no string", name)
		}
	}

	if n := itemSize(p.new); n > 400<<10 {
		return p, invalid("Item size has exceeded the maximum allowed size: %d bytes", n)
	}
	return p, nil
}

// expr evaluates the part of DynamoDB's grammar that the system uses. The grammar, without
// precedence but AND before OR: names, :values, comparisons, parentheses, attribute_exists
// and attribute_not_exists.
type expr struct {
	text   *string
	names  map[string]string
	values Item
	toks   []string
}

var token = regexp.MustCompile(`\s*(<>|<=|>=|[=<>(),]|[#:]?[A-Za-z0-9_]+|\S)`)

// known are the tokens of expressions: a simulation sends the same few all the time.
var known sync.Map

// tokens are those of an expression. The caller does not change them.
func tokens(s string) []string {
	if out, is := known.Load(s); is {
		return out.([]string)
	}
	var out []string
	for _, m := range token.FindAllStringSubmatch(s, -1) {
		out = append(out, m[1])
	}
	known.Store(s, out)
	return out
}

// condition reports whether the expression holds for a row, nil if there is none. No
// expression always holds. What is left behind a complete expression is refused, so that no
// part is silently ignored.
func (e *expr) condition(it Item) (bool, error) {
	if e.text == nil {
		return true, nil
	}
	// The tokens are consumed from the front; the slice itself is shared and stays as it is.
	e.toks = tokens(*e.text)
	ok, err := e.or(it)
	if err != nil {
		return ok, err
	}
	if len(e.toks) > 0 {
		return ok, invalid("tabletest: not supported: %q in %q", strings.Join(e.toks, " "), *e.text)
	}
	return ok, nil
}

// next takes the next token, "" at the end.
func (e *expr) next() string {
	if len(e.toks) == 0 {
		return ""
	}
	t := e.toks[0]
	e.toks = e.toks[1:]
	return t
}

// peek reports whether the next token is a word, in any case of letters.
func (e *expr) peek(word string) bool {
	return len(e.toks) > 0 && strings.EqualFold(e.toks[0], word)
}

// Both sides are always evaluated, since they have to be read.
func (e *expr) or(it Item) (bool, error) {
	v, err := e.and(it)
	if err != nil {
		return v, err
	}

	for e.peek("OR") {
		e.next()
		w, err := e.and(it)
		if err != nil {
			return false, err
		}
		v = v || w
	}
	return v, nil
}

// and reads terms; it binds more strongly than or.
func (e *expr) and(it Item) (bool, error) {
	v, err := e.term(it)
	if err != nil {
		return v, err
	}

	for e.peek("AND") {
		e.next()
		w, err := e.term(it)
		if err != nil {
			return false, err
		}
		v = v && w
	}
	return v, nil
}

// term reads a comparison, a test of an attribute, or an expression in parentheses.
func (e *expr) term(it Item) (bool, error) {
	first := e.next()
	switch {
	case first == "(":
		v, err := e.or(it)
		if err != nil {
			return v, err
		}
		if e.next() != ")" {
			return v, invalid("tabletest: a parenthesis is not closed in %q", *e.text)
		}
		return v, nil
	case first == "attribute_exists" || first == "attribute_not_exists":
		if e.next() != "(" {
			return false, invalid("tabletest: %s without parenthesis", first)
		}
		name, err := e.name(e.next())
		e.next()
		_, there := it[name]
		return there == (first == "attribute_exists"), err
	}

	left, err := e.operand(first, it)
	if err != nil {
		return false, err
	}

	op := e.next()
	right, err := e.operand(e.next(), it)
	if err != nil {
		return false, err
	}
	return compare(left, op, right)
}

// name is the attribute that a token names. DynamoDB refuses reserved words without a
// placeholder, even if the attribute exists; so a new name of ours that is one fails in the
// first test.
func (e *expr) name(tok string) (string, error) {
	if strings.HasPrefix(tok, "#") {
		n, ok := e.names[tok]
		if !ok {
			return "", invalid("an expression attribute name used in the expression is not defined: %s", tok)
		}
		return n, nil
	}

	if reservedWords[strings.ToUpper(tok)] {
		return "", invalid("Attribute name is a reserved keyword; reserved keyword: %s", tok)
	}
	return tok, nil
}

// operand is the value of a token: one of the request, or an attribute of the row, nil if it
// has none.
func (e *expr) operand(tok string, it Item) (types.AttributeValue, error) {
	if strings.HasPrefix(tok, ":") {
		v, ok := e.values[tok]
		if !ok {
			return nil, invalid("an expression attribute value used in the expression is not defined: %s", tok)
		}
		return v, nil
	}
	n, err := e.name(tok)
	return it[n], err
}

// compare applies an operator. Values of different types are different, and neither is less.
func compare(a types.AttributeValue, op string, b types.AttributeValue) (bool, error) {
	if a == nil || b == nil {
		return op == "<>", nil // a missing attribute equals nothing
	}

	c, comparable := order(a, b)
	if !comparable {
		return op == "<>", nil
	}

	switch op {
	case "=":
		return c == 0, nil
	case "<>":
		return c != 0, nil
	case "<":
		return c < 0, nil
	case "<=":
		return c <= 0, nil
	case ">":
		return c > 0, nil
	case ">=":
		return c >= 0, nil
	}
	return false, invalid("tabletest: operator %q is not supported", op)
}

// order compares two values of one type; Booleans that differ have no order.
func order(a, b types.AttributeValue) (int, bool) {
	switch x := a.(type) {
	case *types.AttributeValueMemberS:
		if y, ok := b.(*types.AttributeValueMemberS); ok {
			return strings.Compare(x.Value, y.Value), true
		}
	case *types.AttributeValueMemberN:
		if y, ok := b.(*types.AttributeValueMemberN); ok {
			return num(x.Value).Cmp(num(y.Value)), true
		}
	case *types.AttributeValueMemberBOOL:
		if y, ok := b.(*types.AttributeValueMemberBOOL); ok && x.Value == y.Value {
			return 0, true
		}
	}
	return 0, false
}

// num is a number without rounding: DynamoDB has 38 digits, more than a float64 keeps.
func num(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return new(big.Rat)
	}
	return r
}

var clause = regexp.MustCompile(`\b(SET|ADD|REMOVE)\b`)

// update applies SET name = :value, ADD name :number and REMOVE name. The result is a new
// item; old is not changed. A row that does not exist begins with its key.
func (e *expr) update(text string, old, key Item) (Item, error) {
	it := maps.Clone(old)
	if it == nil {
		it = maps.Clone(key)
	}

	at := clause.FindAllStringIndex(text, -1)
	for i, w := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		for part := range strings.SplitSeq(text[w[1]:end], ",") {
			if err := e.apply(it, text[w[0]:w[1]], tokens(part)); err != nil {
				return nil, err
			}
		}
	}
	return it, nil
}

// apply makes one part of an update in it. ADD makes a missing number; there are no other
// functions.
func (e *expr) apply(it Item, verb string, t []string) error {
	if len(t) == 0 {
		return invalid("tabletest: an empty %s", verb)
	}

	name, err := e.name(t[0])
	if err != nil {
		return err
	}

	switch {
	case verb == "REMOVE" && len(t) == 1:
		delete(it, name)
		return nil
	case verb == "SET" && len(t) == 3 && t[1] == "=":
		it[name], err = e.operand(t[2], it)
		return err
	case verb == "ADD" && len(t) == 2:
		v, err := e.operand(t[1], it)
		n, ok := v.(*types.AttributeValueMemberN)
		if err != nil || !ok {
			return invalid("tabletest: ADD takes numbers here")
		}
		sum := num(n.Value)
		if prev, ok := it[name].(*types.AttributeValueMemberN); ok {
			sum.Add(sum, num(prev.Value))
		}
		it[name] = &types.AttributeValueMemberN{Value: sum.RatString()}
		return nil
	}
	return invalid("tabletest: update %s %v is not supported", verb, t)
}

// itemSize is DynamoDB's size of a row in bytes, accurate enough for its limits.
func itemSize(it Item) int {
	n := 0
	for name, v := range it {
		n += len(name) + valueSize(v)
	}
	return n
}

func valueSize(v types.AttributeValue) int {
	switch x := v.(type) {
	case *types.AttributeValueMemberS:
		return len(x.Value)
	case *types.AttributeValueMemberN:
		return len(x.Value)/2 + 1
	case *types.AttributeValueMemberB:
		return len(x.Value)
	case *types.AttributeValueMemberL:
		n := 3
		for _, y := range x.Value {
			n += 1 + valueSize(y)
		}
		return n
	case *types.AttributeValueMemberM:
		n := 3
		for name, y := range x.Value {
			n += 1 + len(name) + valueSize(y)
		}
		return n
	case *types.AttributeValueMemberSS:
		n := 0
		for _, s := range x.Value {
			n += len(s)
		}
		return n
	}
	return 1
}
