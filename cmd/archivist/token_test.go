package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestToken: an administrator makes a token for a program, which works as that until it is revoked. The token is on the
// standard output alone, and once; nothing that is said or logged has it afterwards. With it no other one is made.
func TestToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, "alma")
		g.want("login", 0, "alma")
		g.want("token create hook --role viewer --role depositor:maps --days 9 --reason test", 0, "arc_")
		text := strings.TrimSpace(g.console.Out.String())
		if len(text) < 64 || strings.ContainsAny(text, " \n") || strings.Contains(g.console.Err.String(), text) {
			t.Fatalf("%q, %q", text, g.console.Err.String())
		}
		g.want("token create hook --role viewer --days 9 --reason test", 4, "archivist token revoke ")
		g.want("token create other --role king --days 9 --reason test", 2, "grants: found")
		g.want("token list", 0, "hook")

		g.console.Env["ARCHIVIST_TOKEN"] = text
		hidden := func(line string, code int, says string) {
			t.Helper()
			g.want(line, code, says)
			if strings.Contains(g.console.Both.String()+g.log.String(), text[len(text)-64:]) {
				t.Errorf("%s: the secret is told", line)
			}
		}
		hidden("whoami", 0, "token:")
		hidden("config", 0, "ARCHIVIST_TOKEN")
		hidden("queue", 0, "running")
		hidden("queue pause --reason test", 9, "needs the role operator")
		hidden("token create other --role viewer --days 9 --reason test", 9, "needs the role administrator")

		delete(g.console.Env, "ARCHIVIST_TOKEN")
		hidden("token revoke hook --reason test", 0, "revoked")
		hidden("token show hook", 3, "archivist token list")
		hidden("token list --state revoked --json name,state,revokedReason", 0, `"revokedReason": "test"`)
		g.console.Env["ARCHIVIST_TOKEN"] = text
		hidden("whoami", 9, "was revoked, or") // the gateway has one text for all

		delete(g.console.Env, "ARCHIVIST_TOKEN")
		g.want("token create brief --role administrator --days 1 --reason test", 0, "arc_")
		g.console.Env["ARCHIVIST_TOKEN"] = strings.TrimSpace(g.console.Out.String())
		g.want("token create more --role viewer --days 366 --reason test", 9, "cannot make another one")
		time.Sleep(24 * time.Hour) // of the bubble: the token ends
		g.want("whoami", 9, "has expired, was")
	})
}
