package container

import "io"

// cacheBlock and cacheBlocks are what is kept of a container in memory: each block is one request to its source.
const (
	cacheBlock  = 4 << 20
	cacheBlocks = 2
)

// blockCache keeps the last blocks that were read.
type blockCache struct {
	from   io.ReaderAt
	size   int64
	blocks []block // the one that was used last comes first
}

type block struct {
	n    int64
	data []byte
}

func cached(from io.ReaderAt, size int64) io.ReaderAt { return &blockCache{from: from, size: size} }

func (c *blockCache) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		if off >= c.size {
			return n, io.EOF
		}
		data, err := c.block(off / cacheBlock)
		if err != nil {
			return n, err
		}
		if off%cacheBlock >= int64(len(data)) {
			return n, io.ErrUnexpectedEOF // the source is shorter than its size
		}
		m := copy(p[n:], data[off%cacheBlock:])
		n, off = n+m, off+int64(m)
	}
	return n, nil
}

// block reads block n, if it is not there.
func (c *blockCache) block(n int64) ([]byte, error) {
	for i, b := range c.blocks {
		if b.n == n {
			copy(c.blocks[1:i+1], c.blocks[:i])
			c.blocks[0] = b
			return b.data, nil
		}
	}

	var data []byte
	if len(c.blocks) == cacheBlocks {
		data = c.blocks[cacheBlocks-1].data[:0]
		c.blocks = c.blocks[:cacheBlocks-1]
	}
	size := min(cacheBlock, c.size-n*cacheBlock)
	if int64(cap(data)) < size {
		data = make([]byte, size)
	}

	data = data[:size]
	got, err := c.from.ReadAt(data, n*cacheBlock)
	if err != nil && err != io.EOF {
		return nil, err
	}
	c.blocks = append([]block{{n, data[:got]}}, c.blocks...)
	return data[:got], nil
}
