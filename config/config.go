// Package config answers one question: what does the configuration say?
//
// It is one TOML file. Whatever in it this version doesn't know or can't honour is an error, never ignored: a rule that
// somebody wrote down and nobody obeys sends more than they meant. Load reports everything that is wrong at once, each
// on a line with its place and key. Secrets stay references ("env:NAME", "file:/path") until their user resolves them.
package config

import (
	"time"

	"countersign/operator"
)

// Config is a configuration that has passed every check. Paths in it are absolute. Sections that are pointers are nil when
// the file doesn't have them.
type Config struct {
	// Path is the file that was read, "" for a configuration made in the program.
	Path string `toml:"-"`

	Ledger     Ledger           `toml:"ledger"`
	Operators  []operator.Entry `toml:"operators"`
	Internal   *Internal        `toml:"internal"`
	Transports Transports       `toml:"transports"`
	Deliver    Deliver          `toml:"deliver"`
	Notify     Notify           `toml:"notify"`
	Agents     Agents           `toml:"agents"`
	Followups  Followups        `toml:"followups"`
	Limits     Limits           `toml:"limits"`

	warnings []string
}

// Ledger says where the ledger is.
type Ledger struct {
	Path        string        `toml:"path"`         // default countersign.db
	BusyTimeout time.Duration `toml:"busy_timeout"` // how long a statement waits for another writer; 1 ms to 10 min, default 5 s
}

// Internal is the one destination that may see internal metadata, once it has been verified.
type Internal struct {
	Platform string `toml:"platform"` // "slack"
	Team     string `toml:"team"`     // workspace id
	Channel  string `toml:"channel"`  // channel id, not a name
}

// Transports holds the transports that are configured. Filing for one that is nil is refused.
type Transports struct {
	Local    *Local    `toml:"local"`
	SMTP     *SMTP     `toml:"smtp"`
	Slack    *Slack    `toml:"slack"`
	Telegram *Telegram `toml:"telegram"`
}

// Local writes messages into a directory.
type Local struct {
	Dir string `toml:"dir"` // default outbox
}

// The ways in which an SMTP connection is protected.
const (
	TLSStartTLS = "starttls" // RFC 3207; a server that doesn't offer it gets nothing
	TLSImplicit = "implicit" // RFC 8314 section 3
	TLSNone     = "none"     // loopback, or with AllowPlaintext
)

// The ways to authenticate at an SMTP server (RFC 4954).
const (
	AuthNone    = ""
	AuthPlain   = "plain"
	AuthLogin   = "login"
	AuthXOAuth2 = "xoauth2"
)

// SMTP hands messages to a mail server.
type SMTP struct {
	Address        string        `toml:"address"` // host:port
	TLS            string        `toml:"tls"`     // TLSStartTLS (default), TLSImplicit or TLSNone
	AllowPlaintext bool          `toml:"allow_plaintext"`
	CAFile         string        `toml:"ca_file"` // PEM, roots beside the system's; "" for none
	From           string        `toml:"from"`    // RFC 5322 mailbox, one address
	Auth           string        `toml:"auth"`    // AuthNone (default), AuthPlain, AuthLogin or AuthXOAuth2
	Username       string        `toml:"username"`
	Password       Secret        `toml:"password"` // for xoauth2 the access token
	Timeout        time.Duration `toml:"timeout"`  // of connecting, and of each answer; 1 s to 10 min, default 30 s
}

// Slack posts messages as a bot.
type Slack struct {
	Token         Secret        `toml:"token"`          // of the bot, xoxb-…
	AppToken      Secret        `toml:"app_token"`      // for the operators' surface in Socket Mode, xapp-…
	SigningSecret Secret        `toml:"signing_secret"` // for the operators' surface over HTTP
	APIURL        string        `toml:"api_url"`        // default https://slack.com/api/
	TextLimit     int           `toml:"text_limit"`     // of one message, in characters; 1 to 40,000, default 4,000
	Timeout       time.Duration `toml:"timeout"`        // of connecting, and of each question; 1 s to 10 min, default 30 s
}

// Telegram sends messages as a bot.
type Telegram struct {
	Token     Secret        `toml:"token"`      // of the bot, 123456:…
	APIURL    string        `toml:"api_url"`    // default https://api.telegram.org
	CheckChat bool          `toml:"check_chat"` // ask getChat before the claim; default true
	Timeout   time.Duration `toml:"timeout"`    // of connecting, and of each question; 1 s to 10 min, default 30 s
}

// Deliver says how a delivery pass works.
type Deliver struct {
	Timeout        time.Duration `toml:"timeout"`          // of one Send; 1 s to 15 min, default 60 s
	RateLimitWaits int           `toml:"rate_limit_waits"` // rate-limit refusals that one Send may wait out; 0 to 5, default 0
	Concurrency    int           `toml:"concurrency"`      // destinations at once; 1 to 64, default 8
	Hold           time.Duration `toml:"hold"`             // between approval and delivery; 0 to 168 h, default 0
}

// Notify says how long a draft may wait for a decision before the internal channel is reminded of it, by its priority. 0 is never.
type Notify struct {
	RemindP0 time.Duration `toml:"remind_p0"` // 0 to 8760 h, default 15 min
	RemindP1 time.Duration `toml:"remind_p1"` // default 1 h
	RemindP2 time.Duration `toml:"remind_p2"` // default 4 h
	RemindP3 time.Duration `toml:"remind_p3"` // default 24 h
}

// Agents limits each agent, so that one that runs wild doesn't bury the operators. 0 is no limit.
type Agents struct {
	MaxWaiting int `toml:"max_waiting"` // drafts that wait for a decision; 0 to 1,000,000, default 100
	MaxHourly  int `toml:"max_hourly"`  // filings within an hour; 0 to 1,000,000, default 200
}

// Followups says how agents are told what became of their drafts, without asking: by a command or a webhook, or, if neither is
// configured, not at all. Their inbox has it in any case.
type Followups struct {
	Command []string      `toml:"command"` // an absolute path, and arguments; gets each follow-up on its standard input
	Env     []string      `toml:"env"`     // names of the variables that the command gets; it gets no others
	URL     string        `toml:"url"`     // https, or http to this machine; each follow-up is posted to it. May hold a secret
	Secret  Secret        `toml:"secret"`  // signs what is posted
	Timeout time.Duration `toml:"timeout"` // of one follow-up; 1 s to 10 min, default 10 s
}

// Configured tells whether agents are told.
func (f Followups) Configured() bool { return len(f.Command) > 0 || f.URL != "" }

// Limits are the longest fields that a filing may have, in characters (Unicode code points).
type Limits struct {
	Text         int `toml:"text"`         // default 40,000
	Subject      int `toml:"subject"`      // default 300
	Summary      int `toml:"summary"`      // default 200
	Context      int `toml:"context"`      // default 4,000
	Counterparty int `toml:"counterparty"` // default 120
	Channel      int `toml:"channel"`      // default 500
	Thread       int `toml:"thread"`       // default 998, the longest line of RFC 5322 section 2.1.1
	User         int `toml:"user"`         // default 120
}

// Default is the configuration of an empty file: no operators, no transports, relative paths.
func Default() *Config {
	return &Config{
		Ledger:    Ledger{Path: "countersign.db", BusyTimeout: 5 * time.Second},
		Deliver:   Deliver{Timeout: time.Minute, Concurrency: 8},
		Notify:    Notify{RemindP0: 15 * time.Minute, RemindP1: time.Hour, RemindP2: 4 * time.Hour, RemindP3: 24 * time.Hour},
		Agents:    Agents{MaxWaiting: 100, MaxHourly: 200},
		Followups: Followups{Timeout: 10 * time.Second},
		Limits: Limits{
			Text: 40_000, Subject: 300, Summary: 200, Context: 4_000, Counterparty: 120, Channel: 500, Thread: 998, User: 120,
		},
	}
}

func defaultLocal() *Local { return &Local{Dir: "outbox"} }

func defaultSlack() *Slack {
	return &Slack{APIURL: "https://slack.com/api/", TextLimit: 4_000, Timeout: 30 * time.Second}
}

func defaultTelegram() *Telegram {
	return &Telegram{APIURL: "https://api.telegram.org", CheckChat: true, Timeout: 30 * time.Second}
}

func defaultSMTP() *SMTP { return &SMTP{TLS: TLSStartTLS, Timeout: 30 * time.Second} }

// Warnings lists what is allowed and unwise, or works and does nothing, one sentence each.
func (c *Config) Warnings() []string { return append([]string(nil), c.warnings...) }
