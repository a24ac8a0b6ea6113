-- What the operators' surface needs: the outbox of notices, the cards and what each of them showed, the follow-ups' hook.

CREATE INDEX notices_by_obligation ON notices (obligation_id, id);

CREATE INDEX obligations_rejected_pair ON obligations (counterparty, channel, id) WHERE status = 'rejected';

CREATE INDEX filings_by_agent ON filings (agent, filed_us);

CREATE INDEX decisions_by_operator ON obligation_decisions (operator, id);

-- Obligations of which something is still to be told or shown. Not history: a row goes when all of it was, unless its mark rose
-- meanwhile. The notices themselves stay.
CREATE TABLE outbox (
  obligation_id INTEGER PRIMARY KEY REFERENCES obligations (id),
  mark INTEGER NOT NULL,
  queued_us INTEGER NOT NULL
) STRICT;

-- Notices that the internal destination has had, and where there.
CREATE TABLE notices_sent (
  notice_id INTEGER PRIMARY KEY REFERENCES notices (id),
  coordinate TEXT NOT NULL,
  sent_us INTEGER NOT NULL
) STRICT;

-- Every card posted. The newest of an obligation and kind in the internal channel is the one that is edited.
CREATE TABLE cards (
  id INTEGER PRIMARY KEY,
  obligation_id INTEGER NOT NULL REFERENCES obligations (id),
  kind TEXT NOT NULL CHECK (kind IN ('draft', 'unknown')),
  decision_id INTEGER REFERENCES obligation_approval_snapshots (decision_id),
  team TEXT NOT NULL,
  channel TEXT NOT NULL,
  ts TEXT NOT NULL,
  posted_us INTEGER NOT NULL,
  UNIQUE (channel, ts)
) STRICT;

CREATE INDEX cards_by_obligation ON cards (obligation_id, kind, id);

-- What a card showed: of which epoch, in which parts. Complete says that the parts together are the whole text, in order.
CREATE TABLE card_views (
  id INTEGER PRIMARY KEY,
  card_id INTEGER NOT NULL REFERENCES cards (id),
  epoch INTEGER NOT NULL,
  text_sha256 TEXT NOT NULL,
  envelope_sha256 TEXT NOT NULL,
  parts TEXT NOT NULL CHECK (json_valid(parts)),
  complete INTEGER NOT NULL CHECK (complete IN (0, 1)),
  content_sha256 TEXT NOT NULL,
  shown_us INTEGER NOT NULL
) STRICT;

CREATE INDEX card_views_by_card ON card_views (card_id, id);

-- The card whose complete view an operator decided on.
CREATE TABLE decision_views (
  decision_id INTEGER PRIMARY KEY REFERENCES obligation_decisions (id),
  view_id INTEGER NOT NULL REFERENCES card_views (id)
) STRICT;

-- The one reminder in each internal channel, which is edited and not repeated. Not history.
CREATE TABLE digests (
  channel TEXT PRIMARY KEY,
  ts TEXT NOT NULL,
  content_sha256 TEXT NOT NULL,
  posted_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Follow-ups that the configured hook has not taken yet. Not history: a row goes when it did; the follow-up stays.
CREATE TABLE hook_queue (
  followup_id INTEGER PRIMARY KEY REFERENCES followups (id),
  failures INTEGER NOT NULL,
  retry_us INTEGER NOT NULL,
  error TEXT NOT NULL
) STRICT;
