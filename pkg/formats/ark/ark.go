// Package ark reads and makes Archival Resource Keys, with the NOID check character.
//
// An ARK identifies an object permanently: ark:/NAAN/name, where the NAAN (name assigning
// authority number) is that of an archive. A name begins with the shoulder on which the
// archive mints names, and ends in a character that detects a mistyped ARK:
//
//	given, err := ark.Parse("https://n2t.net/ark:99999/fk4-tq65-d6k") // ark:/99999/fk4tq65d6k
//	minted := ark.Mint("99999", "fk4", rand.IntN)
//
// The package does not know which names are in use: the caller that mints one must
// reserve it.
// (Source: The ARK Identifier Scheme, draft-kunze-ark; NOID, "noid check digit algorithm".)
package ark

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Alphabet of minted names: no vowels, so that no words arise, and no l
// (NOID, "noid check digit algorithm").
const Alphabet = "0123456789bcdfghjkmnpqrstvwxz"

// Random is how many random characters a minted name has. 29 to the ninth is 1.4 * 10^13
// names for each shoulder, so one that is minted is free but for very rare cases.
const Random = 9

// ErrSyntax reports that a text is not an ARK.
var ErrSyntax = errors.New("an ARK has the form ark:/NAAN/name, e.g. ark:/99999/fk4tq65d6k")

// form is what is left after decoding. A name has no slash, with which the name of a part of an
// object would begin.
var form = regexp.MustCompile(`^ark:/?([0-9bcdfghjkmnpqrstvwxz]{5,9})/([A-Za-z0-9=~*+@_$.]+)$`)

// MaxName bounds a name in bytes: identifiers are parts of keys, which have at
// most 2,048 bytes in DynamoDB and 1,024 in S3.
const MaxName = 255

// ARK is an identifier's two parts.
type ARK struct{ NAAN, Name string }

// String returns the canonical form ark:/NAAN/name. Equal ARKs have equal texts, however they
// were written.
func (a ARK) String() string { return "ark:/" + a.NAAN + "/" + a.Name }

// Parse understands ark:/NAAN/name, ark:NAAN/name, hyphens, percent-encoding and resolver URLs.
// Any other text is ErrSyntax, and a name that is too long an error. Hyphens have no meaning in
// an ARK (draft-kunze-ark, "Normalization and Lexical Equivalence"), so they are left out. Case
// counts, but in "ark:". A check character is not required: archives mint without it, too.
func Parse(s string) (ARK, error) {
	if i := strings.Index(strings.ToLower(s), "ark:"); i > 0 && strings.Contains(s[:i], "://") {
		s = s[i:]
	}

	if d, err := url.PathUnescape(s); err == nil {
		s = d
	}

	if len(s) > 4 {
		s = strings.ToLower(s[:4]) + s[4:]
	}

	m := form.FindStringSubmatch(strings.TrimSuffix(strings.ReplaceAll(s, "-", ""), "/"))
	if m == nil {
		return ARK{}, fmt.Errorf("%q: %w", s, ErrSyntax)
	}

	if len(m[2]) > MaxName {
		return ARK{}, fmt.Errorf("the name of the ARK that begins with %.40q has %d bytes; at most %d are allowed", s,
			len(m[2]), MaxName)
	}
	return ARK{m[1], m[2]}, nil
}

// Mint makes a name on a shoulder ("fk4") from random numbers: rnd(n) is uniform in [0,n).
// The caller must check that it is free. The last character is the check character, so Valid
// holds.
func Mint(naan, shoulder string, rnd func(n int) int) ARK {
	var b strings.Builder
	b.WriteString(shoulder)
	for range Random {
		b.WriteByte(Alphabet[rnd(len(Alphabet))])
	}
	return ARK{naan, b.String() + string(CheckCharacter(naan+"/"+b.String()))}
}

// CheckCharacter is the NOID check character of NAAN/name: the sum of position × value,
// positions from 1, modulo 29. Characters outside the alphabet count 0. It detects each
// single wrong character and each transposition of two, as long as the text is shorter than
// 29 characters.
func CheckCharacter(s string) byte {
	sum := 0
	for i := range len(s) {
		sum += (i + 1) * max(0, strings.IndexByte(Alphabet, s[i]))
	}
	return Alphabet[sum%len(Alphabet)]
}

// Valid reports whether the name ends in its check character. It is meant for names that were
// minted so; of others it is a matter of chance.
func (a ARK) Valid() bool {
	n := len(a.Name) - 1
	return n > 0 && CheckCharacter(a.NAAN+"/"+a.Name[:n]) == a.Name[n]
}
