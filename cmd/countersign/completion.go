package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

func (a *app) completionCommand() *cli.Command {
	return &cli.Command{
		Name:     "completion",
		Usage:    "print a script that completes commands and flags in a shell",
		Category: categoryUpkeep,
		Description: manual{
			text: "The script is text on standard output, also with --json.",
			examples: []string{
				"countersign completion bash > ~/.local/share/bash-completion/completions/countersign",
				"countersign completion zsh > ~/.zfunc/_countersign",
				"countersign completion fish > ~/.config/fish/completions/countersign.fish",
			},
		}.String(),
		Subcommands: []*cli.Command{
			a.shellCommand("bash", bashCompletion, "source <(countersign completion bash)"),
			a.shellCommand("zsh", zshCompletion, "source <(countersign completion zsh)"),
			a.shellCommand("fish", fishCompletion, "countersign completion fish | source"),
		},
	}
}

func (a *app) shellCommand(shell, script, tryOut string) *cli.Command {
	return &cli.Command{
		Name:  shell,
		Usage: "print the script for " + shell,
		Description: manual{
			text:     "Try it in the running shell:",
			examples: []string{tryOut},
		}.String(),
		Action: func(*cli.Context) error {
			_, err := io.WriteString(a.env.Stdout, script)
			return err
		},
	}
}

// The scripts call the program with the words typed so far, the last one being the word under the cursor (maybe ""),
// and this flag behind them. The program answers with one candidate a line, a tab and what it is for. The answer is
// not left to urfave/cli: it reads os.Args, stops at the first positional argument, can't tell a word under the cursor
// from one before it, and its scripts evaluate what stands on the line.
const completionFlag = "--generate-bash-completion"

// completionRequest returns the words to complete, and whether that is what the program was called for.
func completionRequest(words []string) ([]string, bool) {
	n := len(words)
	if n == 0 || words[n-1] != completionFlag {
		return nil, false
	}
	return words[:n-1], true
}

// complete prints what the last of words could become.
func (a *app) complete(words []string) error {
	current := ""
	if n := len(words); n > 0 {
		words, current = words[:n-1], words[n-1]
	}
	s := a.sortWords(words)
	for _, c := range s.choices(current) {
		if strings.HasPrefix(c.word, current) {
			if _, err := fmt.Fprintf(a.env.Stdout, "%s\t%s\n", c.word, c.about); err != nil {
				return err
			}
		}
	}
	return nil
}

type choice struct{ word, about string }

// choices are the words that may follow. None means that the shell offers files.
func (s *sorter) choices(current string) []choice {
	switch {
	case s.wantsValue:
		return nil
	case strings.HasPrefix(current, "-") && !s.noFlags:
		return s.flagChoices()
	}
	if commands := s.commandChoices(); len(commands) > 0 || s.noFlags || current != "" {
		return commands
	}
	if c := s.line.command(); c != nil && c.Action != nil {
		if takes := arityOf(c.ArgsUsage); takes.max >= 0 && len(s.line.args) >= takes.max {
			return s.flagChoices()
		}
	}
	return nil
}

// commandChoices are the commands that the next word may name; for help, those that it can explain.
func (s *sorter) commandChoices() []choice {
	commands := s.candidates()
	switch c := s.line.command(); {
	case c != nil && c.Name == "help":
		path, err := s.app.find(s.line.args)
		if err != nil {
			return nil
		}
		if len(path) > 0 {
			commands = path[len(path)-1].Subcommands
		} else {
			commands = s.app.commands
		}
	case len(s.line.args) > 0:
		return nil
	}
	var choices []choice
	for _, c := range commands {
		if !c.Hidden {
			choices = append(choices, choice{c.Name, c.Usage})
		}
	}
	return choices
}

// flagChoices are the flags that can be given here and were not yet.
func (s *sorter) flagChoices() []choice {
	var choices []choice
	for _, f := range s.known() {
		used := slices.ContainsFunc(s.line.flags, func(u flagUse) bool { return u.flag == f })
		if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() || used && !isRepeatable(f) {
			continue
		}
		choices = append(choices, choice{dashed(flagName(f)), flagAbout(f)})
	}
	return choices
}

// Bash hands "--flag=value" over as three words.
const bashCompletion = `# bash completion for countersign
_countersign() {
  local i n=-1 line words=()
  for ((i = 1; i <= COMP_CWORD; i++)); do
    if ((n >= 0)) && [[ ${COMP_WORDS[i]} == "=" || ${words[n]} == -*= ]]; then
      words[n]+=${COMP_WORDS[i]}
    else
      words[++n]=${COMP_WORDS[i]}
    fi
  done
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("${line%%$'\t'*}")
  done < <("${COMP_WORDS[0]/#\~\//$HOME/}" "${words[@]}" --generate-bash-completion 2>/dev/null)
}
complete -o bashdefault -o default -F _countersign countersign
`

const zshCompletion = `#compdef countersign
# zsh completion for countersign
_countersign() {
  local line
  local -a described
  for line in "${(@f)$("${words[1]/#\~\//$HOME/}" "${(@)words[2,CURRENT]}" --generate-bash-completion 2>/dev/null)}"; do
    [[ -n $line ]] && described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( $#described )); then
    _describe 'countersign' described
  else
    _files
  fi
}
if [[ $funcstack[1] == _countersign ]]; then
  _countersign "$@"
else
  compdef _countersign countersign
fi
`

const fishCompletion = `# fish completion for countersign
function __countersign_complete
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    $program $words (commandline -ct | string collect -a) --generate-bash-completion 2>/dev/null
end
complete -c countersign -n 'count (__countersign_complete) >/dev/null' -f
complete -c countersign -a '(__countersign_complete)'
`
