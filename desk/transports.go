package desk

import (
	"time"

	"countersign/config"
	"countersign/transports"
	"countersign/transports/local"
	"countersign/transports/slack"
	"countersign/transports/smtp"
	"countersign/transports/telegram"
)

// openTransports makes the transport of each section that is there, by platform. None of them connects yet, or reads its secret.
func openTransports(c config.Transports, now func() time.Time) (map[string]transports.Transport, error) {
	out := map[string]transports.Transport{}
	var failed error
	add := func(platform string, t transports.Transport, err error) {
		if err != nil && failed == nil {
			failed = &ConfigError{Section: "transports." + platform, Err: err}
		}
		out[platform] = t
	}
	if t := c.Local; t != nil {
		opened, err := local.New(local.Config{Dir: t.Dir, Now: now})
		add("local", opened, err)
	}
	if t := c.SMTP; t != nil {
		opened, err := smtp.New(smtp.Config{
			Address: t.Address, TLS: t.TLS, AllowPlaintext: t.AllowPlaintext, CAFile: t.CAFile, From: t.From,
			Auth: t.Auth, Username: t.Username, Password: t.Password.Resolve, Timeout: t.Timeout, Now: now,
		})
		add("smtp", opened, err)
	}
	if t := c.Slack; t != nil {
		opened, err := slack.New(slack.Config{Token: t.Token.Resolve, APIURL: t.APIURL, TextLimit: t.TextLimit, Timeout: t.Timeout, Now: now})
		add("slack", opened, err)
	}
	if t := c.Telegram; t != nil {
		opened, err := telegram.New(telegram.Config{Token: t.Token.Resolve, APIURL: t.APIURL, CheckChat: t.CheckChat, Timeout: t.Timeout, Now: now})
		add("telegram", opened, err)
	}
	return out, failed
}
