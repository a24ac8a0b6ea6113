package fakeslack

import "slices"

// A Team is a workspace.
type Team struct{ ID, Name, Domain string }

// A Channel is any conversation. Where ContextTeamID is "", it is the workspace's. A channel that the app is no member of can be read but
// not posted to, unless it is private: then it isn't there.
// Source: https://docs.slack.dev/reference/objects/conversation-object
type Channel struct {
	ID, Name           string
	IsMember           bool
	IsPrivate          bool
	IsArchived         bool
	IsIM, IsMpIM       bool
	IsExtShared        bool
	IsOrgShared        bool
	IsPendingExtShared bool
	ContextTeamID      string
	ConnectedTeamIDs   []string
	User               string // the other side of a direct message
}

// A User is a person or a bot.
type User struct {
	ID, TeamID   string
	Name         string // the handle
	RealName     string // Name where ""
	IsBot        bool
	Deleted      bool
	IsRestricted bool // a guest
}

// SetTeam changes the workspace: what auth.test tells, and the team of every payload.
func (s *Server) SetTeam(team Team) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.team = team
}

// AddChannel adds a channel, or replaces the one with its id.
func (s *Server) AddChannel(c Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.channels, func(old Channel) bool { return old.ID == c.ID }); i >= 0 {
		s.channels[i] = c
		return
	}
	s.channels = append(s.channels, c)
}

// SetChannel changes a channel that is there.
func (s *Server) SetChannel(id string, change func(*Channel)) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.channels, func(c Channel) bool { return c.ID == id })
	if i < 0 {
		s.t.Fatalf("fakeslack: there is no channel %s to change", id)
	}
	change(&s.channels[i])
}

// AddUser adds a user, or replaces the one with its id. A TeamID of "" is the workspace's.
func (s *Server) AddUser(u User) User {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.TeamID == "" {
		u.TeamID = s.team.ID
	}
	if i := slices.IndexFunc(s.users, func(old User) bool { return old.ID == u.ID }); i >= 0 {
		s.users[i] = u
		return u
	}
	s.users = append(s.users, u)
	return u
}

// channel finds one that the app may know of. s.mu is held.
func (s *Server) channel(id string) (Channel, error) {
	for _, c := range s.channels {
		if c.ID == id && (c.member() || !c.IsPrivate) {
			return c, nil
		}
	}
	return Channel{}, refuse("channel_not_found")
}

// open finds a channel that the app may post to. s.mu is held.
func (s *Server) open(id string) (Channel, error) {
	c, err := s.channel(id)
	switch {
	case err != nil:
		return c, err
	case c.IsArchived:
		return c, refuse("is_archived")
	case !c.member():
		return c, refuse("not_in_channel")
	}
	return c, nil
}

// member: who sees a direct message is in it.
func (c Channel) member() bool { return c.IsMember || c.IsIM || c.IsMpIM }

func (s *Server) user(id string) (User, bool) {
	i := slices.IndexFunc(s.users, func(u User) bool { return u.ID == id })
	if i < 0 {
		return User{}, false
	}
	return s.users[i], true
}

// object is the channel as Slack's conversation object.
func (s *Server) object(c Channel) map[string]any {
	direct := c.IsIM || c.IsMpIM
	o := map[string]any{
		"id": c.ID, "created": 1_600_000_000, "is_channel": !direct && !c.IsPrivate, "is_group": c.IsPrivate && !direct,
		"is_im": c.IsIM, "is_mpim": c.IsMpIM, "is_private": c.IsPrivate || direct, "is_archived": c.IsArchived,
		"is_shared": c.IsExtShared || c.IsOrgShared, "is_ext_shared": c.IsExtShared, "is_org_shared": c.IsOrgShared,
		"is_pending_ext_shared": c.IsPendingExtShared, "context_team_id": c.ContextTeamID,
	}
	if c.ContextTeamID == "" {
		o["context_team_id"] = s.team.ID
	}
	if c.ConnectedTeamIDs != nil {
		o["connected_team_ids"] = c.ConnectedTeamIDs
	}
	if c.IsIM {
		o["user"] = c.User
		return o
	}
	o["name"], o["name_normalized"], o["is_member"], o["is_general"] = c.Name, c.Name, c.member(), false
	return o
}

func (u User) object() map[string]any {
	name := u.RealName
	if name == "" {
		name = u.Name
	}
	return map[string]any{
		"id": u.ID, "team_id": u.TeamID, "name": u.Name, "real_name": name, "deleted": u.Deleted, "is_bot": u.IsBot,
		"is_app_user": false, "is_restricted": u.IsRestricted,
		"profile": map[string]any{"real_name": name, "display_name": u.Name, "team": u.TeamID},
	}
}
