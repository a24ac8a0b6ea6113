package main

import (
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

func (a *app) versionCommand() *cli.Command {
	return &cli.Command{
		Name:     "version",
		Usage:    "show the version, and what it was built from",
		Category: categoryUpkeep,
		Description: manual{
			text:     "The commit is known only to a program built from a checkout.",
			examples: []string{"countersign version", "countersign version --json"},
		}.String(),
		Action: func(*cli.Context) error { return a.showVersion() },
	}
}

// buildVersion is what is known of this program; what isn't is "".
type buildVersion struct {
	Version    string `json:"version"` // of the module; "(devel)" for a local build
	Go         string `json:"go"`
	Platform   string `json:"platform"`    // operating system and architecture
	Commit     string `json:"commit"`      // hash
	CommitTime string `json:"commit_time"` // RFC 3339, UTC
	Modified   bool   `json:"modified"`    // the checkout held changes that the commit doesn't
}

// versionFrom reads what the Go tool wrote into the program.
func versionFrom(info *debug.BuildInfo) buildVersion {
	v := buildVersion{
		Version:  info.Main.Version,
		Go:       info.GoVersion,
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.CommitTime = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (a *app) showVersion() error {
	info, ok := debug.ReadBuildInfo()
	if !ok { // built without module support
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	v := versionFrom(info)
	return a.out.show(v, func(p *page) {
		p.line("%s %s", programName, v.Version)
		p.fields(field{"go", v.Go + " " + v.Platform})
		if v.Commit == "" {
			return
		}
		commit := v.Commit + " " + v.CommitTime
		if v.Modified {
			commit += " (modified)"
		}
		p.fields(field{"commit", commit})
	})
}
