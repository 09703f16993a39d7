package property

// pending are reasons for which a submission should be refused and is not yet.
var pending = map[string]bool{
	"its collection requires a digest of each file": true,
}
