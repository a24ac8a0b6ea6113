package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// screen is a terminal of which each key is read as it is pressed, without echo.
type screen struct {
	In      io.Reader
	Out     io.Writer
	Size    func() (width, height int) // in characters
	Discard func()                     // forgets what was typed and not read yet
	Close   func() error               // gives the terminal back as it was
}

// openTerminal switches the terminal of this process to raw mode. Keys that would be signals, Ctrl-C first, are keys then.
func openTerminal() (*screen, error) {
	in, out := int(os.Stdin.Fd()), int(os.Stdout.Fd())
	before, err := term.MakeRaw(in)
	if err != nil {
		return nil, err
	}
	return &screen{
		In: os.Stdin, Out: os.Stdout,
		Size: func() (int, int) {
			width, height, err := term.GetSize(out)
			if err != nil {
				return 0, 0
			}
			return width, height
		},
		Discard: func() { discard(in) },
		Close:   func() error { return term.Restore(in, before) },
	}, nil
}

// discard reads what waits in the terminal's queue. It is bounded: whoever types without end is not waited for.
func discard(fd int) {
	var queue [256]byte
	for range 64 {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(ready, 0); err != nil || n == 0 || ready[0].Revents&unix.POLLIN == 0 {
			return
		}
		if n, err := unix.Read(fd, queue[:]); err != nil || n < len(queue) {
			return
		}
	}
}

// key is what was pressed: a character, or one of the keys below.
type key rune

const (
	keyNone key = -iota // one without a meaning here
	keyUp
	keyDown
	keyPageUp
	keyPageDown
	keyHome
	keyEnd
	keyEnter
	keyBackspace
	keyClearLine
	keyEscape
	keyInterrupt // Ctrl-C, Ctrl-D
)

// keyboard reads keys.
type keyboard struct {
	in      *bufio.Reader
	discard func()
}

func newKeyboard(in io.Reader, discard func()) *keyboard {
	return &keyboard{in: bufio.NewReader(in), discard: discard}
}

// forget drops what was typed before: a key pressed for one draft must not decide on the next.
func (k *keyboard) forget() {
	k.discard()
	_, _ = k.in.Discard(k.in.Buffered())
}

// press waits for a key that comes alone. Several at once are pasted, or were typed ahead of what the screen shows: none of them is an
// answer to it.
func (k *keyboard) press(ctx context.Context) (key, error) {
	pressed, err := k.next(ctx)
	if err == nil && k.in.Buffered() > 0 && pressed != keyInterrupt {
		_, _ = k.in.Discard(k.in.Buffered())
		return keyNone, nil
	}
	return pressed, err
}

// next waits for a key. The end of the input is an interruption: the terminal has gone.
func (k *keyboard) next(ctx context.Context) (key, error) {
	var pressed key
	_, err := await(ctx, func() ([]byte, error) {
		var err error
		pressed, err = k.read()
		return nil, err
	})
	if errors.Is(err, io.EOF) || errors.Is(err, unix.EIO) {
		return keyInterrupt, nil
	}
	if err != nil {
		return keyNone, err
	}
	return pressed, nil
}

func (k *keyboard) read() (key, error) {
	r, _, err := k.in.ReadRune()
	if err != nil {
		return keyNone, err
	}
	switch r {
	case 0x03, 0x04:
		return keyInterrupt, nil
	case '\r', '\n':
		return keyEnter, nil
	case 0x7f, 0x08:
		return keyBackspace, nil
	case 0x15:
		return keyClearLine, nil
	case 0x1b:
		return k.escape()
	}
	if r < ' ' || r == '\ufffd' {
		return keyNone, nil
	}
	return key(r), nil
}

// escape tells the escape key from a sequence by whether more came with it, as terminals send one in one piece.
// Source: ECMA-48 section 5.4, and https://invisible-island.net/xterm/ctlseqs/ctlseqs.html#h2-PC-Style-Function-Keys
func (k *keyboard) escape() (key, error) {
	if k.in.Buffered() == 0 {
		return keyEscape, nil
	}
	begin, err := k.in.ReadByte()
	if err != nil || begin != '[' && begin != 'O' {
		return keyNone, err
	}
	var sequence []byte
	for k.in.Buffered() > 0 {
		c, err := k.in.ReadByte()
		if err != nil {
			return keyNone, err
		}
		sequence = append(sequence, c)
		if c >= 0x40 && c <= 0x7e {
			break
		}
	}
	return sequences[string(sequence)], nil
}

// sequences are the keys that send more than a character. All others are keyNone.
var sequences = map[string]key{
	"A": keyUp, "B": keyDown, "5~": keyPageUp, "6~": keyPageDown, "H": keyHome, "1~": keyHome, "F": keyEnd, "4~": keyEnd,
}
