package stream

import (
	"io"
	"os"
	"sync"
)

// readerFlow carries any io.Reader into a command's input.
type readerFlow struct {
	r    io.Reader
	to   *os.File
	once sync.Once
}

func (f *readerFlow) run() error {
	defer f.release()
	_, err := io.Copy(struct{ io.Writer }{f.to}, f.r)
	return err
}

// settle closes the pipe under a write that waits; a Read ends when it ends.
func (f *readerFlow) settle()       { f.release() }
func (f *readerFlow) abort()        { f.release() }
func (f *readerFlow) release()      { f.once.Do(func() { f.to.Close() }) }
func (f *readerFlow) foreign() bool { return true }
