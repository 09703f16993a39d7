package doctor_test

import (
	"testing"
	"time"

	"archivist/pkg/ingest/token"
)

// tokened is a world with three tokens: second is active, failed is revoked, and one has expired.
func tokened(t *testing.T) *world {
	w := newWorld(t)
	q := w.doctor().Queue
	s := token.Store{Table: q.Table, Now: q.Now, NewID: q.NewID}
	by := token.By{Actor: "ann", Reason: "a test", Component: "api"}
	made := func(name string, days int) string {
		row, _, err := s.Create(w.Context(),
			token.Request{Name: name, Grants: []string{"viewer"}, Days: days, By: by})
		if err != nil {
			w.Fatal(err)
		}
		return row.ID
	}
	w.second, w.failed = made("stays", 100), made("goes", 100)
	made("ends", 1)
	if _, err := s.Revoke(w.Context(), w.failed, by); err != nil {
		w.Fatal(err)
	}
	w.advance(2 * 24 * time.Hour)
	return w
}

func ofSecond(w *world) string { return "token:" + w.second }

// ofTokens are the damages of a world with tokens.
var ofTokens = []damage{
	{"no row of the active tokens", func(w *world) { w.drop(key("TOKENS", "LIVING")) },
		one("token-living", ofSecond), true},
	{"an active token that is no token", func(w *world) {
		w.drop(key("TOKEN#"+w.second, "TOKEN"))
	}, one("token-living", ofSecond), true},
	{"an active token with another end", func(w *world) {
		w.set(key("TOKEN#"+w.second, "TOKEN"), "expires_ms", num(1<<50))
		w.set(key("TOKEN#"+w.second, "TOKEN"), "gone", num(1<<50/1000+90*24*3600))
	}, one("token-living", ofSecond), true},
	{"two active tokens with one name", func(w *world) {
		w.set(key("TOKEN#"+w.failed, "TOKEN"), "token_name", str("stays"))
		w.set(key("TOKEN#"+w.failed, "TOKEN"), "revoked_ms", nil)
		w.set(key("TOKEN#"+w.failed, "TOKEN"), "gone", num(w.now.AddDate(0, 0, 98+90).Unix()))
	}, one("token-living", func(w *world) string { return "token:" + w.failed }), false},
	{"a token without grants", func(w *world) { w.set(key("TOKEN#"+w.second, "TOKEN"), "grants", nil) },
		one("state", ofSecond), false},
	{"a token that stays for ever", func(w *world) { w.set(key("TOKEN#"+w.second, "TOKEN"), "gone", nil) },
		one("index-place", ofSecond), true},
	{"a token that is not listed", func(w *world) { w.set(key("TOKEN#"+w.second, "TOKEN"), "shelf", nil) },
		one("index-place", ofSecond), true},
	{"a token without its last event", func(w *world) {
		w.drop(key("TOKEN#"+w.failed, "EV#000000000002"))
	}, one("event-last", func(w *world) string { return "token:" + w.failed }), false},
}
