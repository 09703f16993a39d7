package bagit

// version is a version of BagIt.
type version struct{ major, minor int }

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

// known are the versions that this package knows.
var known = []version{{0, 93}, {0, 94}, {0, 95}, {0, 96}, {0, 97}, {1, 0}}
