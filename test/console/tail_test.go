package console_test

import "testing"

// TestOutputIsReadOn: who has scrolled up in output that is followed reads on at the same line when more comes, also if
// the page has lost as much at its begin; who is at its end stays there.
func TestOutputIsReadOn(t *testing.T) {
	v := of(t).open(t, 390, "light")
	v.goTo("queue")
	ask[int](v, `(() => {
		const live = document.getElementById("live"), log = document.createElement("div");
		const pre = document.createElement("pre"), tell = name => document.dispatchEvent(new Event(name));
		log.className = "wide log tail";
		log.append(pre);
		live.prepend(log);
		window.write = (from, to) => pre.replaceChildren(...Array.from({length: (to - from) / 10}, (_, i) => {
			const part = document.createElement("span");
			part.textContent = Array.from({length: 10}, (_, n) => "line " + (from + 10 * i + n) + "\n").join("");
			return part;
		}));
		window.more = (from, to) => { tell("htmx:beforeSwap"); write(from, to); tell("htmx:afterSwap"); };
		window.scrolled = to => { if (to !== undefined) log.scrollTop = to; return Math.round(log.scrollTop); };
		window.high = () => log.scrollHeight;
		write(0, 500);
		return 1;
	})()`)
	line := ask[float64](v, `high() / 500`)
	ask[int](v, `(more(100, 600), scrolled())`)
	if at := ask[float64](v, `scrolled()`); at < -1 {
		t.Errorf("the end is not followed: at %v", at)
	}
	from := ask[float64](v, `scrolled(-2000)`)
	want := from
	for _, s := range []struct {
		more  string
		lines float64
	}{{`more(100, 600)`, 0}, {`more(100, 700)`, 100}, {`more(300, 800)`, 100}} {
		want -= s.lines * line
		at := ask[float64](v, `(`+s.more+`, scrolled())`)
		if at < want-2*line || at > want+2*line {
			t.Errorf("%s: at %v, expected %v", s.more, at, want)
		}
	}
}
