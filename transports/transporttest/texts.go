package transporttest

import "strings"

// A NastyText is one that some mailer or bot was seen to change.
type NastyText struct{ Name, Text string }

// NastyTexts lists what every transport that takes a text must carry unchanged,
// or refuse in Validate.
func NastyTexts() []NastyText {
	return []NastyText{
		{"one line", "hello"},
		{"final newline", "hello\n"},
		{"blank lines around", "\n\nhello\n\n"},
		{"a dot", "."},
		{"a line of one dot", "a\n.\nb"},
		{"dots in front", "..x\n.env\n...\n. \n.\n"},
		{"ends DATA by itself", "a\r\n.\r\nMAIL FROM:<evil@example.com>\r\n"},
		{"From in front", "From here on\n>From there"},
		{"trailing spaces", "a  \nb\t\n  "},
		{"leading BOM", "\ufeffhello"},
		{"mixed line ends", "a\nb\r\nc\rd\n\re"},
		{"only white space", " \t\n "},
		{"emoji", "👩‍👩‍👧 🇫🇷 ✅ \U000e0041"},
		{"right to left", "שלום, مرحبا\u202e.exe"},
		{"one and two code points", "\u00e9 e\u0301"},
		{"no-break and zero-width", "a\u00a0b\u200bc\u2028d\u2029e"},
		{"escapes", "\x1b[2K\x1b[8m \x07 \x7f"},
		{"markup", "<b>&lt;i&gt;</b> AT&T: 5 < 6 > 4 \"q\" 'q' \\u003c \\n"},
		{"encoded words", "=?utf-8?q?x?= =3D =\n="},
		{"JSON", `{"text":"x"}` + "\n]}"},
		{"a long line", strings.Repeat("x", 5000)},
		{"a long line of wide characters", strings.Repeat("é漢🙂", 1500)},
		{"a header", "Subject: x\nBcc: evil@example.com\n\nbody"},
		{"fills lines of base64", strings.Repeat("a", 57*3)},
	}
}
