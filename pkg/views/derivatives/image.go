package derivatives

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // registers the format
	"image/jpeg"
	_ "image/png" // registers the format

	"golang.org/x/image/draw"
	_ "golang.org/x/image/tiff" // registers the format
	_ "golang.org/x/image/webp" // registers the format

	"archivist/pkg/kernel/fault"
)

// Limits bound what the thumbnail of one image may cost. They are checked before the costly step: the
// size before the file is read, the memory before it is decoded.
type Limits struct {
	Bytes  int64 // of the file, which is read into memory
	Memory int64 // bytes that decoding may take, as the header of the image lets expect
	Side   int   // pixels of the longer side of a thumbnail
}

// DefaultLimits fit a function with 1 GiB of memory: a photo of 80 megapixels, or a scan of 40 in a
// TIFF with strips.
var DefaultLimits = Limits{Bytes: 128 << 20, Memory: 320 << 20, Side: 256}

// quality of the JPEG of a thumbnail.
const quality = 82

// thumbnail makes the thumbnail of an image, as JPEG: scaled into a square, upright, on white. An
// Invalid says why there can be none. An error without a kind is one of the encoder: a defect. It reads
// the header, refuses what is too large, decodes, scales down, and turns: turning the small picture is
// cheaper than turning the large one.
func (l Limits) thumbnail(file []byte) (thumb []byte, err error) {
	// The decoders are tested with damaged files, and still one may panic.
	defer func() {
		if p := recover(); p != nil {
			thumb, err = nil, fault.New(fault.Invalid, "the image cannot be decoded: %v", p)
		}
	}()

	header, format, err := image.DecodeConfig(bytes.NewReader(file))
	if err != nil {
		return nil, fault.New(fault.Invalid, "the file is no image that can be read: %w", err)
	}

	if err := l.check(header, format, file); err != nil {
		return nil, err
	}

	picture, _, err := image.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, fault.New(fault.Invalid, "the %s cannot be decoded: %w", format, err)
	}

	small := turn(l.scale(picture), orientation(file, format))
	var out bytes.Buffer
	if err := jpeg.Encode(&out, small, &jpeg.Options{Quality: quality}); err != nil {
		return nil, fmt.Errorf("derivatives: encode a thumbnail: %w", err)
	}
	return out.Bytes(), nil
}

// check refuses an image before it is decoded: what cannot be decoded within the bounds. A small file
// can name a picture of gigabytes ("decompression bomb"), so the header decides, not the size of the
// file.
func (l Limits) check(header image.Config, format string, file []byte) error {
	if header.Width < 1 || header.Height < 1 {
		return fault.New(fault.Invalid, "the %s has %d × %d pixels", format, header.Width,
			header.Height)
	}

	need := int64(header.Width) * int64(header.Height) * perPixel(header, format, file)
	if need > l.Memory {
		return fault.New(fault.Invalid,
			"the %s has %d × %d pixels: decoding it takes about %d MiB of memory, and at "+
				"most %d MiB are allowed", format, header.Width, header.Height, need>>20,
			l.Memory>>20)
	}
	return nil
}

// perPixel is how many bytes of memory a decoder takes for each pixel, at most. It is the size of a
// pixel in the decoded picture, and what the decoder of the format keeps besides.
func perPixel(header image.Config, format string, file []byte) int64 {
	bytes := int64(4)
	switch header.ColorModel {
	case color.GrayModel:
		bytes = 1
	case color.Gray16Model:
		bytes = 2
	case color.RGBA64Model, color.NRGBA64Model:
		bytes = 8
	}

	switch {
	case format == "jpeg" && progressive(file):
		return bytes + 16 // the coefficients of all blocks, as int32
	case format == "tiff" && !striped(file, header.Height):
		return 4 * bytes // the whole image as one strip, read into a buffer that grows
	case format == "png", format == "tiff", format == "webp":
		return 2 * bytes // the passes of an interlaced image; a strip; transformed pixels
	}
	return bytes
}

// scale fits a picture into the square, and puts it on white. It never enlarges. Transparent parts
// become white, since a JPEG has no transparency.
func (l Limits) scale(picture image.Image) *image.RGBA {
	from := picture.Bounds()
	w, h := from.Dx(), from.Dy()
	// A large picture is thinned out first: filtering all of its pixels takes seconds.
	if most := 8 * l.Side; max(w, h) > most {
		w, h = within(w, h, most)
		thin := image.NewRGBA(image.Rect(0, 0, w, h))
		draw.NearestNeighbor.Scale(thin, thin.Rect, picture, from, draw.Src, nil)
		picture = thin
	}

	if max(w, h) > l.Side {
		w, h = within(w, h, l.Side)
	}

	out := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(out, out.Rect, image.White, image.Point{}, draw.Src)
	draw.CatmullRom.Scale(out, out.Rect, picture, picture.Bounds(), draw.Over, nil)
	return out
}

// within scales width and height so that the longer one is side; both stay at least 1.
func within(w, h, side int) (int, int) {
	longer := max(w, h)
	return max(1, w*side/longer), max(1, h*side/longer)
}
