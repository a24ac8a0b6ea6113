package fakeslack

import (
	"encoding/json"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A Request is one call of the Web API as it came.
type Request struct {
	Method string // "chat.postMessage"
	URI    string
	Header http.Header
	Body   []byte
	// Params are the fields of a form or the members of a JSON object; what is no string there is given as its JSON.
	Params map[string]string
}

// Requests returns the calls of a method so far, in order; of all methods where it is "".
func (s *Server) Requests(method string) (found []Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if method == "" || r.Method == method {
			found = append(found, r)
		}
	}
	return found
}

// reply is the JSON object that answers.
type reply map[string]any

// warn adds a warning, at both places where Slack puts them.
// Source: https://docs.slack.dev/apis/web-api/#responses
func (r reply) warn(code string) {
	metadata, ok := r["response_metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		r["response_metadata"] = metadata
	}
	codes, _ := metadata["warnings"].([]string)
	codes = append(codes, code)
	metadata["warnings"], r["warning"] = codes, strings.Join(codes, ",")
}

// refusal is an error of the Web API.
type refusal struct {
	code     string
	messages []string
}

func refuse(code string, messages ...string) error { return &refusal{code, messages} }

func (r *refusal) Error() string { return strings.Join(append([]string{r.code}, r.messages...), "; ") }

func (r *refusal) reply() reply {
	answer := reply{"ok": false, "error": r.code}
	if r.messages != nil {
		answer["response_metadata"] = map[string]any{"messages": r.messages}
		answer["errors"] = r.messages
	}
	return answer
}

// A call is a request on its way through a method.
type call struct {
	Request
	keep     int // characters of the text to keep; 0 is Slack's limit
	warnings []string
}

// method is one of the Web API: which token it takes, and what it does while s.mu is held.
type method struct {
	app bool
	do  func(*Server, *call) (reply, error)
}

func methods() map[string]method {
	return map[string]method{
		"auth.test":             {do: (*Server).authTest},
		"conversations.info":    {do: (*Server).conversationsInfo},
		"conversations.list":    {do: (*Server).conversationsList},
		"users.info":            {do: (*Server).usersInfo},
		"chat.postMessage":      {do: (*Server).postMessage},
		"chat.postEphemeral":    {do: (*Server).postEphemeral},
		"chat.update":           {do: (*Server).updateMessage},
		"chat.delete":           {do: (*Server).deleteMessage},
		"chat.getPermalink":     {do: (*Server).getPermalink},
		"views.open":            {do: (*Server).viewsOpen},
		"views.update":          {do: (*Server).viewsUpdate},
		"apps.connections.open": {app: true, do: (*Server).connectionsOpen},
	}
}

func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // cut off on its way: nothing came
	}
	c := &call{Request: Request{Method: r.PathValue("method"), URI: r.RequestURI, Header: r.Header.Clone(), Body: body}}
	unread := c.parse(r)
	outcome := s.arrive(c.Request)
	if outcome.answer != nil && !outcome.effect {
		outcome.answer(s, w, r, nil)
		return
	}
	answer := s.perform(c, outcome, unread)
	if outcome.answer != nil {
		outcome.answer(s, w, r, answer)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

// arrive records a request and takes the outcome that was scripted for it.
func (s *Server) arrive(r Request) (next Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	if queue := s.scripts[r.Method]; len(queue) > 0 {
		next, s.scripts[r.Method] = queue[0], queue[1:]
	}
	s.wake()
	return next
}

// perform does what was asked for and returns the answer's octets.
func (s *Server) perform(c *call, outcome Outcome, unread error) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.wake()
	c.keep = outcome.keep
	answer, err := s.attempt(c, unread)
	if err != nil {
		answer = err.(*refusal).reply()
	}
	for _, code := range c.warnings {
		answer.warn(code)
	}
	if message, ok := answer["message"].(map[string]any); ok && outcome.echo != nil {
		message["text"] = outcome.echo(message["text"].(string))
	}
	return encode(answer)
}

func (s *Server) attempt(c *call, unread error) (reply, error) {
	m, known := s.methods[c.Method]
	if !known {
		return nil, refuse("unknown_method")
	}
	if unread != nil {
		return nil, unread
	}
	if err := s.authorise(c, m.app); err != nil {
		return nil, err
	}
	answer, err := m.do(s, c)
	if err != nil {
		return nil, err
	}
	full := reply{"ok": true}
	maps.Copy(full, answer)
	return full, nil
}

// authorise checks the token, which comes as a header or as a parameter.
// Source: https://docs.slack.dev/reference/methods/auth.test, errors
func (s *Server) authorise(c *call, app bool) error {
	token, _ := strings.CutPrefix(c.Header.Get("Authorization"), "Bearer ")
	if token == "" {
		token = c.Params["token"]
	}
	want, other := s.config.botToken, s.config.appToken
	if app {
		want, other = other, want
	}
	switch {
	case token == "":
		return refuse("not_authed")
	case sameSecret(token, want):
		return nil
	case sameSecret(token, other):
		return refuse("not_allowed_token_type")
	}
	return refuse("invalid_auth")
}

// parse reads the parameters. A JSON body without a charset is taken with a warning, as Slack does.
// Source: https://docs.slack.dev/apis/web-api/#basics
func (c *call) parse(r *http.Request) error {
	c.Params = map[string]string{}
	c.addForm(r.URL.Query())
	if len(c.Body) == 0 {
		return nil
	}
	kind, params, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(c.Body))
		if err != nil {
			return refuse("invalid_form_data")
		}
		c.addForm(form)
		return nil
	case err == nil && kind == "application/json":
		if params["charset"] == "" {
			c.warnings = append(c.warnings, "missing_charset")
		}
		return c.addJSON()
	}
	return refuse("invalid_post_type")
}

func (c *call) addForm(form url.Values) {
	for name := range form {
		c.Params[name] = form.Get(name)
	}
}

func (c *call) addJSON() error {
	if !json.Valid(c.Body) {
		return refuse("invalid_json")
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(c.Body, &members) != nil {
		return refuse("json_not_object")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var text string
		if json.Unmarshal(members[name], &text) != nil {
			text = string(members[name])
		}
		c.Params[name] = text
	}
	return nil
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
