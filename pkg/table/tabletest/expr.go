package tabletest

import (
	"maps"
	"math/big"
	"regexp"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/table"
)

// plan is what one action of a write would do.
type plan struct {
	key       table.Key
	old, new  Item
	holds     bool
	checkOnly bool
}

func (f *Fake) prepare(w types.TransactWriteItem) (plan, error) {
	var e expr
	var p plan
	var keyed Item
	var update *string
	switch {
	case w.Put != nil:
		keyed, p.new = w.Put.Item, maps.Clone(w.Put.Item)
		e = expr{names: w.Put.ExpressionAttributeNames, values: w.Put.ExpressionAttributeValues,
			text: w.Put.ConditionExpression}
	case w.Delete != nil:
		keyed = w.Delete.Key
		e = expr{names: w.Delete.ExpressionAttributeNames, values: w.Delete.ExpressionAttributeValues,
			text: w.Delete.ConditionExpression}
	case w.ConditionCheck != nil:
		keyed, p.checkOnly = w.ConditionCheck.Key, true
		e = expr{names: w.ConditionCheck.ExpressionAttributeNames, values: w.ConditionCheck.ExpressionAttributeValues,
			text: w.ConditionCheck.ConditionExpression}
	case w.Update != nil:
		keyed, update = w.Update.Key, w.Update.UpdateExpression
		e = expr{names: w.Update.ExpressionAttributeNames, values: w.Update.ExpressionAttributeValues,
			text: w.Update.ConditionExpression}
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

// expr evaluates the part of DynamoDB's grammar that the system uses.
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

func (e *expr) condition(it Item) (bool, error) {
	if e.text == nil {
		return true, nil
	}
	e.toks = tokens(*e.text)
	ok, err := e.or(it)
	if err == nil && len(e.toks) > 0 {
		err = invalid("tabletest: not supported: %q in %q", strings.Join(e.toks, " "), *e.text)
	}
	return ok, err
}

func (e *expr) next() string {
	if len(e.toks) == 0 {
		return ""
	}
	t := e.toks[0]
	e.toks = e.toks[1:]
	return t
}

func (e *expr) peek(word string) bool {
	return len(e.toks) > 0 && strings.EqualFold(e.toks[0], word)
}

func (e *expr) or(it Item) (bool, error) {
	v, err := e.and(it)
	for err == nil && e.peek("OR") {
		e.next()
		var w bool
		w, err = e.and(it)
		v = v || w
	}
	return v, err
}

func (e *expr) and(it Item) (bool, error) {
	v, err := e.term(it)
	for err == nil && e.peek("AND") {
		e.next()
		var w bool
		w, err = e.term(it)
		v = v && w
	}
	return v, err
}

func (e *expr) term(it Item) (bool, error) {
	first := e.next()
	switch {
	case first == "(":
		v, err := e.or(it)
		if err == nil && e.next() != ")" {
			err = invalid("tabletest: a parenthesis is not closed in %q", *e.text)
		}
		return v, err
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

func num(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return new(big.Rat)
	}
	return r
}

var clause = regexp.MustCompile(`\b(SET|ADD|REMOVE)\b`)

// update applies SET name = :value, ADD name :number and REMOVE name.
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
