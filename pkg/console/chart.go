package console

// chart is a chart of bars. The template "chart" draws it; what it shows is also in a table beside it.
type chart struct {
	Title string
	Tone  string // a class; "" = none
	Bars  []bar
	Most  string // the highest value, with its unit
	First string // the label of the first bar
	Last  string
}

// bar is one value. The template draws it from X and Y on.
type bar struct {
	Label, Shown string // Shown is the value with its unit
	Value        int64
	X, Y, W, H   int
}

// The size of a chart, in units of its own: it is scaled to its place.
const (
	chartWidth  = 600
	chartHeight = 120
)

// charted makes a chart of values, each with its label. show is a value with its unit.
func charted(title string, bars []bar, show func(int64) string) chart {
	c := chart{Title: title, Bars: bars}
	var most int64
	for _, b := range bars {
		most = max(most, b.Value)
	}
	for i := range bars {
		b := &bars[i]
		from, to := i*chartWidth/len(bars), (i+1)*chartWidth/len(bars)
		b.X, b.W, b.Shown = from, max(1, to-from-1), show(b.Value)
		b.H = int(float64(b.Value) / float64(max(most, 1)) * chartHeight)
		if b.Value > 0 {
			b.H = max(b.H, 2) // what is there is seen
		}
		b.Y = chartHeight - b.H
	}
	c.Most = show(most)
	if len(bars) > 0 {
		c.First, c.Last = bars[0].Label, bars[len(bars)-1].Label
	}
	return c
}
