package fakeslack

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Reasons of a disconnect.
// Source: https://docs.slack.dev/apis/events-api/using-socket-mode, "Disconnecting"
const (
	Warning          = "warning"           // the connection will be closed in some seconds
	RefreshRequested = "refresh_requested" // it is closed now: connect anew
	LinkDisabled     = "link_disabled"     // Socket Mode was switched off
)

// ErrNotConnected: no app is connected by Socket Mode.
var ErrNotConnected = errors.New("fakeslack: nothing is connected by Socket Mode")

const writeTime = 5 * time.Second

// link is the state of Socket Mode.
type link struct {
	tickets  map[string]bool // those in URLs that nobody used yet
	sockets  []*socket       // all that were greeted, ended ones too
	refusals []string        // error codes for the next calls of apps.connections.open
	acks     map[string]chan json.RawMessage
}

func newLink() link { return link{tickets: map[string]bool{}, acks: map[string]chan json.RawMessage{}} }

// socket is one connection.
type socket struct {
	conn  *websocket.Conn
	write sync.Mutex
	done  chan struct{} // it ended
	// with Server.mu held
	silent, ended bool
}

// connectionsOpen gives out a URL that works once.
// Source: https://docs.slack.dev/reference/methods/apps.connections.open
func (s *Server) connectionsOpen(*call) (reply, error) {
	if len(s.link.refusals) > 0 {
		code := s.link.refusals[0]
		s.link.refusals = s.link.refusals[1:]
		return nil, refuse(code)
	}
	ticket := s.newID("ticket-")
	s.link.tickets[ticket] = true
	return reply{"url": strings.Replace(s.http.URL, "http", "ws", 1) + "/link/?ticket=" + ticket + "&app_id=" + AppID}, nil
}

// RefuseOpens refuses the next n calls of apps.connections.open with an error code.
func (s *Server) RefuseOpens(n int, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.link.refusals = append(s.link.refusals, code)
	}
}

func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	if !s.admit(r.URL.Query().Get("ticket")) {
		http.Error(w, "the URL was used already, or never given out", http.StatusForbidden)
		return
	}
	defer s.sockets.Done()
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	k := &socket{conn: conn, done: make(chan struct{})}
	conn.SetPingHandler(func(data string) error { return s.pong(k, data) })
	if !s.greet(k) {
		return
	}
	s.sockets.Go(func() { s.pings(k) })
	s.listen(k)
}

// admit uses up a ticket.
func (s *Server) admit(ticket string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.link.tickets[ticket] {
		return false
	}
	delete(s.link.tickets, ticket)
	s.sockets.Add(1)
	return true
}

// greet notes a connection and says hello on it; false when the test is over. Who has read the hello finds the connection noted, and what
// is sent to a noted connection comes after the hello.
func (s *Server) greet(k *socket) bool {
	k.write.Lock()
	defer k.write.Unlock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return false
	}
	s.link.sockets = append(s.link.sockets, k)
	s.wake()
	s.mu.Unlock()
	_ = k.put(hello()) // where it fails, listening does too
	return true
}

func hello() []byte {
	return encode(map[string]any{
		"type": "hello", "num_connections": 1, "connection_info": map[string]any{"app_id": AppID},
		"debug_info": map[string]any{"host": "applink-fakeslack", "build_number": 1, "approximate_connection_time": 18_060},
	})
}

func (k *socket) send(frame []byte) error {
	k.write.Lock()
	defer k.write.Unlock()
	return k.put(frame)
}

// put writes a frame while k.write is held.
func (k *socket) put(frame []byte) error {
	_ = k.conn.SetWriteDeadline(time.Now().Add(writeTime))
	return k.conn.WriteMessage(websocket.TextMessage, frame)
}

func (s *Server) isSilent(k *socket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return k.silent
}

func (s *Server) pong(k *socket, data string) error {
	if s.isSilent(k) {
		return nil
	}
	return k.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTime))
}

// pings pings at once and then on the interval, until the connection ends.
func (s *Server) pings(k *socket) {
	ticker := time.NewTicker(s.config.ping)
	defer ticker.Stop()
	for {
		if !s.isSilent(k) && k.conn.WriteControl(websocket.PingMessage, []byte("Ping from applink-fakeslack"), time.Now().Add(writeTime)) != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-k.done:
			return
		}
	}
}

// listen takes acknowledgements until the connection ends.
func (s *Server) listen(k *socket) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		k.ended = true
		close(k.done)
		s.wake()
	}()
	for {
		_, frame, err := k.conn.ReadMessage()
		if err != nil {
			return
		}
		s.acknowledged(frame)
	}
}

// live is the newest connection that didn't end. s.mu is held.
func (s *Server) live() (*socket, error) {
	for i := len(s.link.sockets) - 1; i >= 0; i-- {
		if k := s.link.sockets[i]; !k.ended {
			return k, nil
		}
	}
	return nil, ErrNotConnected
}

// Connections counts the connections that were greeted so far, ended ones too.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.link.sockets)
}

// Connected waits for a connection that was greeted and didn't end.
func (s *Server) Connected(ctx context.Context) error { return s.ConnectedAgain(ctx, 1) }

// ConnectedAgain waits until n connections were greeted in all, and the newest didn't end.
func (s *Server) ConnectedAgain(ctx context.Context, n int) error {
	return s.Until(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.link.sockets) >= n && !s.link.sockets[len(s.link.sockets)-1].ended
	})
}

// Disconnected waits until no connection is left.
func (s *Server) Disconnected(ctx context.Context) error {
	return s.Until(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		_, err := s.live()
		return err != nil
	})
}

func (s *Server) newest() (*socket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live()
}

// Disconnect asks the newest connection's client to leave. After a Warning the connection stays open until the client does; with the other
// reasons it is closed.
func (s *Server) Disconnect(reason string) error {
	k, err := s.newest()
	if err != nil {
		return err
	}
	frame := encode(map[string]any{"type": "disconnect", "reason": reason, "debug_info": map[string]any{"host": "applink-fakeslack"}})
	if err := k.send(frame); err != nil || reason == Warning {
		return err
	}
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = k.conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(writeTime)) // it fails where the client has left at once
	return nil
}

// GoSilent leaves the newest connection open and says nothing on it any more, neither pings nor pongs nor envelopes.
func (s *Server) GoSilent() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.live()
	if err != nil {
		return err
	}
	k.silent = true
	return nil
}

// CutFrame ends the newest connection in the middle of a frame.
func (s *Server) CutFrame() error {
	k, err := s.newest()
	if err != nil {
		return err
	}
	k.write.Lock()
	defer k.write.Unlock()
	// RFC 6455, section 5.2: a final text frame of 1,000 octets, of which 20 come.
	begun := append([]byte{0x81, 126, 1000 >> 8, 1000 & 0xff}, `{"type":"interactive`...)
	if _, err := k.conn.NetConn().Write(begun); err != nil {
		return err
	}
	return k.conn.Close()
}

// SendFrame sends any text on the newest connection, also on a silent one.
func (s *Server) SendFrame(frame string) error {
	k, err := s.newest()
	if err != nil {
		return err
	}
	return k.send([]byte(frame))
}
