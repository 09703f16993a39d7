package derivatives

import (
	"bytes"
	"encoding/binary"
	"image"
)

// segments calls each with the marker and the content of each segment of a JPEG before its image
// data, until it returns false (ITU-T T.81, section B.1.1). Another file has none.
func segments(file []byte, each func(marker byte, content []byte) bool) {
	if !bytes.HasPrefix(file, []byte{0xff, 0xd8}) {
		return
	}

	const scan = 0xda
	for rest := file[2:]; len(rest) >= 4 && rest[0] == 0xff; {
		if rest[1] == 0xff { // fill bytes may precede a marker
			rest = rest[1:]
			continue
		}
		size := int(binary.BigEndian.Uint16(rest[2:]))
		if rest[1] == scan || size < 2 || len(rest) < 2+size || !each(rest[1], rest[4:2+size]) {
			return
		}
		rest = rest[2+size:]
	}
}

// progressive reports whether a file is a progressive JPEG. A progressive JPEG (start of frame SOF2)
// keeps the coefficients of the whole picture in memory until its last scan.
func progressive(file []byte) (is bool) {
	const frame = 0xc2
	segments(file, func(marker byte, _ []byte) bool {
		is = marker == frame
		return !is
	})
	return is
}

// orientation is how a picture must be turned to be upright: 1 to 8 (TIFF 6.0 and Exif 2.32, tag
// Orientation), 1 if it does not say. In a JPEG the tag is in its Exif data, which has the form of
// a TIFF.
func orientation(file []byte, format string) int {
	const app1 = 0xe1
	data := file
	if format == "jpeg" {
		data = nil
		segments(file, func(marker byte, content []byte) bool {
			exif, is := bytes.CutPrefix(content, []byte("Exif\x00\x00"))
			is = is && marker == app1
			if is {
				data = exif
			}
			return !is
		})
	} else if format != "tiff" {
		return 1
	}

	n, _ := tiffTag(data, tagOrientation)
	if n < 1 || n > 8 {
		return 1
	}
	return int(n)
}

// Tags of TIFF 6.0, section 8, and section 15 for tiles.
const (
	tagOrientation  = 0x0112
	tagRowsPerStrip = 0x0116
	tagTileLength   = 0x0143
)

// tiffTag reads a number from the first directory of a TIFF; false if it has none. data is not trusted:
// every offset is compared with its length. Only values of the types SHORT and LONG are read, in which
// a single value is in the entry itself, at its byte 8 (TIFF 6.0, section 2).
func tiffTag(data []byte, tag uint16) (value uint32, has bool) {
	const short, long, entry = 3, 4, 12
	var order binary.ByteOrder = binary.BigEndian
	if bytes.HasPrefix(data, []byte("II")) {
		order = binary.LittleEndian
	}

	if len(data) < 8 {
		return 0, false
	}

	at := int64(order.Uint32(data[4:]))
	if at+2 > int64(len(data)) {
		return 0, false
	}

	entries := data[at+2:]
	for range order.Uint16(data[at:]) {
		if len(entries) < entry {
			break
		}

		if order.Uint16(entries) == tag {
			switch order.Uint16(entries[2:]) {
			case short:
				return uint32(order.Uint16(entries[8:])), true
			case long:
				return order.Uint32(entries[8:]), true
			}
		}

		entries = entries[entry:]
	}
	return 0, false
}

// striped reports whether a TIFF is in strips or tiles that are much smaller than it is high. It
// decides how much memory decoding takes: without these tags the whole image is one strip. An eighth of
// the height is the bound, so that a buffer of a strip is small beside the picture.
func striped(file []byte, height int) bool {
	for _, tag := range []uint16{tagTileLength, tagRowsPerStrip} {
		if rows, has := tiffTag(file, tag); has {
			return int64(rows)*8 <= int64(height)
		}
	}
	return false
}

// turn makes a picture upright. It copies, unless the picture is upright already. 5 to 8 change width
// and height. An orientation that is not 2 to 8 leaves it as it is.
func turn(from *image.RGBA, orientation int) *image.RGBA {
	w, h := from.Rect.Dx(), from.Rect.Dy()
	// source is the pixel of the picture at a place of the upright one.
	source := map[int]func(x, y int) (int, int){
		2: func(x, y int) (int, int) { return w - 1 - x, y },
		3: func(x, y int) (int, int) { return w - 1 - x, h - 1 - y },
		4: func(x, y int) (int, int) { return x, h - 1 - y },
		5: func(x, y int) (int, int) { return y, x },
		6: func(x, y int) (int, int) { return y, h - 1 - x },
		7: func(x, y int) (int, int) { return w - 1 - y, h - 1 - x },
		8: func(x, y int) (int, int) { return w - 1 - y, x },
	}[orientation]
	if source == nil {
		return from
	}

	size := image.Rect(0, 0, w, h)
	if orientation >= 5 {
		size = image.Rect(0, 0, h, w)
	}

	out := image.NewRGBA(size)
	for y := range size.Dy() {
		for x := range size.Dx() {
			out.SetRGBA(x, y, from.RGBAAt(source(x, y)))
		}
	}
	return out
}
