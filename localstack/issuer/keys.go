package issuer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// keys are those of an issuer. The next ones are published before they sign, so that who has read
// the keys just before a rotation knows them.
type keys struct {
	now, next pair
	retired   []retired
}

// pair is a key of each kind: tokens of people for the API are signed with ES256, all others with
// RS256, so that both are used.
type pair [2]jose.JSONWebKey

// retired are keys that do not sign any more, and until when they are published.
type retired struct {
	pair
	until time.Time
}

// newPair makes two keys with ids of their own.
func newPair() (p pair, err error) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return p, err
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return p, err
	}
	for n, key := range []crypto.Signer{ec, rs} {
		p[n] = jose.JSONWebKey{Key: key, KeyID: rand.Text(), Use: "sig",
			Algorithm: []string{string(jose.ES256), string(jose.RS256)}[n]}
	}
	return p, nil
}

// newKeys makes the first keys, and the next.
func newKeys() (k keys, err error) {
	if k.now, err = newPair(); err == nil {
		k.next, err = newPair()
	}
	return k, err
}

// rotate signs with the next keys. Those before stay until a time.
func (k *keys) rotate(until time.Time) error {
	next, err := newPair()
	if err == nil {
		k.retired = append(k.retired, retired{k.now, until})
		k.now, k.next = k.next, next
	}
	return err
}

// public are the keys that are published at a time.
func (k *keys) public(at time.Time) (set jose.JSONWebKeySet) {
	var kept []retired
	all := []pair{k.now, k.next}
	for _, old := range k.retired {
		if at.Before(old.until) {
			kept, all = append(kept, old), append(all, old.pair)
		}
	}
	k.retired = kept
	for _, p := range all {
		set.Keys = append(set.Keys, p[0].Public(), p[1].Public())
	}
	return set
}

// sign makes a token.
func (k *keys) sign(alg jose.SignatureAlgorithm, claims ...any) (string, error) {
	key := k.now[0]
	if alg == jose.RS256 {
		key = k.now[1]
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	b := jwt.Signed(signer)
	for _, c := range claims {
		b = b.Claims(c)
	}
	return b.Serialize()
}
