package derivatives

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/image/tiff"

	"archivist/pkg/kernel/fault"
)

// picture is red on the left, blue on the right, and dark at the bottom.
func picture(w, h int) *image.RGBA {
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.RGBA{R: 250, A: 255}
			if x >= w/2 {
				c = color.RGBA{B: 250, A: 255}
			}
			if y >= h/2 {
				c.R, c.B = c.R/5, c.B/5
			}
			out.SetRGBA(x, y, c)
		}
	}
	return out
}

// encoded is the picture in each format that has an encoder.
func encoded(t testing.TB, p image.Image) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for format, encode := range map[string]func(*bytes.Buffer) error{
		"jpeg": func(b *bytes.Buffer) error { return jpeg.Encode(b, p, nil) },
		"png":  func(b *bytes.Buffer) error { return png.Encode(b, p) },
		"gif":  func(b *bytes.Buffer) error { return gif.Encode(b, p, nil) },
		"tiff": func(b *bytes.Buffer) error { return tiff.Encode(b, p, &tiff.Options{Compression: tiff.Deflate}) },
	} {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		out[format] = b.Bytes()
	}
	return out
}

// read reads a thumbnail.
func read(t *testing.T, thumb []byte, err error) image.Image {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	p, err := jpeg.Decode(bytes.NewReader(thumb))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// at is the nearest of some names of colors at a place.
func at(p image.Image, x, y int) string {
	r, g, b, _ := p.At(x, y).RGBA()
	dark := ""
	if max(r, g, b) < 0x6000 {
		dark = "dark "
	}
	switch {
	case min(r, g, b) > 0xc000:
		return "white"
	case r > 2*b:
		return dark + "red"
	case b > 2*r:
		return dark + "blue"
	}
	return "another"
}

// TestFormats: an image of every format has a thumbnail that fits into the square and shows
// the image; a small one is not enlarged.
func TestFormats(t *testing.T) {
	for _, size := range []struct{ w, h, wantW, wantH int }{
		{600, 300, 256, 128}, {100, 1000, 25, 256}, {20, 10, 20, 10}, {5000, 1, 256, 1}} {
		for format, file := range encoded(t, picture(size.w, size.h)) {
			thumb, err := DefaultLimits.thumbnail(file)
			p := read(t, thumb, err)
			if b := p.Bounds(); b.Dx() != size.wantW || b.Dy() != size.wantH {
				t.Errorf("%s of %d × %d: a thumbnail of %v", format, size.w, size.h, b)
			}
			if size.h < 100 {
				continue
			}
			for where, want := range map[[2]int]string{{4, 4}: "red", {size.wantW - 4, 4}: "blue",
				{4, size.wantH - 4}: "dark red", {size.wantW - 4, size.wantH - 4}: "dark blue"} {
				if got := at(p, where[0], where[1]); got != want {
					t.Errorf("%s of %d × %d is %s at %v, want %s", format, size.w, size.h, got, where, want)
				}
			}
		}
	}
	webp, err := os.ReadFile("testdata/lossy.webp")
	if err != nil {
		t.Fatal(err)
	}
	thumb, err := DefaultLimits.thumbnail(webp)
	if b := read(t, thumb, err).Bounds(); b.Dx() != 150 || b.Dy() != 100 {
		t.Errorf("the thumbnail of the WebP has %v", b)
	}
}

// TestTransparent: what is transparent becomes white, not black.
func TestTransparent(t *testing.T) {
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewNRGBA(image.Rect(0, 0, 30, 30))); err != nil {
		t.Fatal(err)
	}
	thumb, err := DefaultLimits.thumbnail(file.Bytes())
	if got := at(read(t, thumb, err), 15, 15); got != "white" {
		t.Errorf("a transparent pixel is %s", got)
	}
}

// withOrientation inserts Exif data into a JPEG.
func withOrientation(file []byte, n uint16, order binary.AppendByteOrder) []byte {
	head := "MM\x00\x2a"
	if order.String() == "LittleEndian" {
		head = "II\x2a\x00"
	}
	exif := order.AppendUint32([]byte("Exif\x00\x00"+head), 8)
	exif = order.AppendUint16(exif, 2)
	for _, entry := range [][2]uint16{{0x0100, 1}, {0x0112, n}} {
		exif = order.AppendUint16(order.AppendUint16(exif, entry[0]), 3)
		exif = order.AppendUint16(order.AppendUint32(exif, 1), entry[1])
		exif = append(exif, 0, 0)
	}
	out := append([]byte{}, file[:2]...)
	out = binary.BigEndian.AppendUint16(append(out, 0xff, 0xe1), uint16(len(exif)+2))
	return append(append(out, exif...), file[2:]...)
}

// TestOrientation: a photo is upright, whichever way the camera was held.
func TestOrientation(t *testing.T) {
	file := encoded(t, picture(200, 100))["jpeg"]
	// The colors of the corners in reading order, by the tag (Exif 2.32, figure of Orientation).
	for n, want := range map[uint16]string{
		1: "red, blue, dark red, dark blue", 2: "blue, red, dark blue, dark red",
		3: "dark blue, dark red, blue, red", 4: "dark red, dark blue, red, blue",
		5: "red, dark red, blue, dark blue", 6: "dark red, red, dark blue, blue",
		7: "dark blue, blue, dark red, red", 8: "blue, dark blue, red, dark red",
		9: "red, blue, dark red, dark blue",
	} {
		for _, order := range []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian} {
			thumb, err := DefaultLimits.thumbnail(withOrientation(file, n, order))
			p := read(t, thumb, err)
			w, h := p.Bounds().Dx(), p.Bounds().Dy()
			got := strings.Join([]string{at(p, 4, 4), at(p, w-5, 4), at(p, 4, h-5), at(p, w-5, h-5)}, ", ")
			if got != want || (w < h) != (n >= 5 && n <= 8) {
				t.Errorf("orientation %d, %s: %d × %d, %s; want %s", n, order, w, h, got, want)
			}
		}
	}
}

// claim changes the size that the header of a PNG states.
func claim(file []byte, w, h uint32) []byte {
	out := bytes.Clone(file)
	binary.BigEndian.PutUint32(out[16:], w)
	binary.BigEndian.PutUint32(out[20:], h)
	binary.BigEndian.PutUint32(out[29:], crc32.ChecksumIEEE(out[12:29]))
	return out
}

// TestRefused: what has no thumbnail has a reason, and costs no memory that is not allowed.
func TestRefused(t *testing.T) {
	files := encoded(t, picture(600, 300))
	for _, c := range []struct {
		name, says string
		file       []byte
	}{
		{"empty", "no image", nil},
		{"text", "no image", []byte("content of a.jpg")},
		{"a vector image", "no image", []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`)},
		{"a PNG that ends too early", "png cannot be decoded", files["png"][:200]},
		{"a JPEG that ends too early", "jpeg cannot be decoded", files["jpeg"][:len(files["jpeg"])/2]},
		{"a TIFF without content", "cannot be decoded", append(files["tiff"][:8:8], make([]byte, 40)...)},
		{"a bomb", "60000 × 60000 pixels: decoding it takes about 27465 MiB", claim(files["png"], 60000, 60000)},
		{"an overflowing bomb", "dimension overflow", claim(files["png"], 1<<31-1, 1<<31-1)},
	} {
		thumb, err := DefaultLimits.thumbnail(c.file)
		if c.name == "a TIFF without content" {
			c.says = ""
		}
		if !fault.Is(err, fault.Invalid) || thumb != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %d bytes, %v; want an Invalid that says %q", c.name, len(thumb), err, c.says)
		}
	}
	small := Limits{Bytes: 1 << 20, Memory: 600*300*4 - 1, Side: 256}
	for format, file := range files {
		if _, err := small.thumbnail(file); format != "gif" && !fault.Is(err, fault.Invalid) {
			t.Errorf("a %s of more memory than allowed gives %v", format, err)
		}
	}
}

// TestProgressive: a progressive JPEG, whose decoder takes much more memory, is recognized.
func TestProgressive(t *testing.T) {
	file := encoded(t, picture(20, 20))["jpeg"]
	if progressive(file) {
		t.Error("a baseline JPEG counts as progressive")
	}
	frame := bytes.Index(file, []byte{0xff, 0xc0})
	file[frame+1] = 0xc2
	if !progressive(withOrientation(file, 1, binary.BigEndian)) {
		t.Error("a progressive JPEG is not recognized")
	}
}

// FuzzThumbnail: no file makes it panic or gives a thumbnail that is not a JPEG.
func FuzzThumbnail(f *testing.F) {
	for _, file := range encoded(f, picture(30, 20)) {
		f.Add(file)
	}
	f.Add(withOrientation(encoded(f, picture(4, 4))["jpeg"], 6, binary.LittleEndian))
	f.Fuzz(func(t *testing.T, file []byte) {
		thumb, err := Limits{Bytes: 1 << 20, Memory: 1 << 22, Side: 16}.thumbnail(file)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%v is not an Invalid", err)
			}
			return
		}
		if _, err := jpeg.Decode(bytes.NewReader(thumb)); err != nil {
			t.Error(err)
		}
	})
}

// TestMemory: decoding takes no more memory than is estimated from the header.
func TestMemory(t *testing.T) {
	const w, h, buffers = 1000, 800, 1 << 20
	for format, file := range encoded(t, picture(w, h)) {
		header, _, err := image.DecodeConfig(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, _, err := image.Decode(bytes.NewReader(file)); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		most := w*h*uint64(perPixel(header, format, file)) + buffers
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s took %d bytes, estimated were %d", format, took, most)
		}
	}
}
