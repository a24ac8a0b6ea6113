-- The six core tables: names, columns, types and order are an interface (other implementations of the contract read them).
-- Times named *_ts are Unix seconds, *_us are Unix microseconds; epochs are integers. Statements are separated by blank lines.

CREATE TABLE obligations (
  id INTEGER PRIMARY KEY,
  counterparty TEXT NOT NULL,
  source TEXT NOT NULL,
  channel TEXT NOT NULL,
  direction TEXT NOT NULL CHECK (direction IN ('we_owe_them', 'they_owe_us', 'none')),
  status TEXT NOT NULL CHECK (status IN ('open', 'drafted', 'approved', 'rejected', 'sent', 'closed')),
  summary TEXT,
  opened_ts INTEGER NOT NULL,
  last_touch_ts INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE obligation_drafts (
  obligation_id INTEGER PRIMARY KEY REFERENCES obligations (id),
  draft_text TEXT NOT NULL,
  context TEXT,
  origin_platform TEXT NOT NULL,
  origin_channel TEXT NOT NULL,
  origin_thread TEXT,
  origin_user TEXT,
  priority TEXT NOT NULL DEFAULT 'P2' CHECK (priority IN ('P0', 'P1', 'P2', 'P3')),
  draft_sha256 TEXT NOT NULL,
  created_ts INTEGER NOT NULL,
  updated_ts INTEGER NOT NULL,
  auto_send_after INTEGER,
  signal_obligation_id INTEGER REFERENCES obligations (id)
) STRICT;

CREATE TABLE obligation_decisions (
  id INTEGER PRIMARY KEY,
  obligation_id INTEGER NOT NULL REFERENCES obligations (id),
  decision TEXT NOT NULL CHECK (decision IN ('approve', 'reject')),
  operator TEXT NOT NULL CHECK (operator <> ''),
  decided_ts INTEGER NOT NULL,
  nonce TEXT NOT NULL UNIQUE CHECK (nonce <> ''),
  draft_updated_ts INTEGER NOT NULL
) STRICT;

CREATE TABLE obligation_approval_snapshots (
  decision_id INTEGER PRIMARY KEY REFERENCES obligation_decisions (id),
  obligation_id INTEGER NOT NULL REFERENCES obligations (id),
  draft_epoch INTEGER NOT NULL,
  draft_text TEXT NOT NULL,
  draft_sha256 TEXT NOT NULL,
  origin_platform TEXT NOT NULL,
  origin_channel TEXT NOT NULL,
  origin_thread TEXT,
  kind TEXT NOT NULL CHECK (kind = 'draft_sent')
) STRICT;

CREATE TABLE obligation_delivery_claims (
  obligation_id INTEGER NOT NULL REFERENCES obligations (id),
  decision_id INTEGER NOT NULL REFERENCES obligation_approval_snapshots (decision_id),
  token TEXT NOT NULL UNIQUE CHECK (token <> ''),
  state TEXT NOT NULL CHECK (state IN ('claimed', 'dispatching', 'delivered', 'unknown', 'cancelled')),
  created_ts INTEGER NOT NULL,
  updated_ts INTEGER NOT NULL,
  reconciliation_evidence TEXT,
  PRIMARY KEY (obligation_id, decision_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE obligation_deliveries (
  id INTEGER PRIMARY KEY,
  obligation_id INTEGER NOT NULL REFERENCES obligations (id),
  decision_id INTEGER REFERENCES obligation_decisions (id),
  kind TEXT NOT NULL CHECK (kind IN ('draft_sent', 'reject_notice', 'manual_notice')),
  coordinate TEXT,
  delivered_ts INTEGER NOT NULL,
  UNIQUE (obligation_id, decision_id)
) STRICT;

CREATE UNIQUE INDEX obligations_one_draft ON obligations (counterparty, channel) WHERE status = 'drafted';

CREATE INDEX obligations_waiting ON obligations (id) WHERE status = 'drafted';

CREATE INDEX obligations_deliverable ON obligations (source, channel, id) WHERE status = 'approved';

CREATE INDEX obligations_approved_pair ON obligations (counterparty, channel) WHERE status = 'approved';

CREATE INDEX decisions_by_obligation ON obligation_decisions (obligation_id, id);

CREATE INDEX snapshots_by_obligation ON obligation_approval_snapshots (obligation_id, draft_epoch);

CREATE UNIQUE INDEX claims_one_active ON obligation_delivery_claims (obligation_id) WHERE state IN ('claimed', 'dispatching', 'unknown');

CREATE UNIQUE INDEX claims_one_per_decision ON obligation_delivery_claims (decision_id);

-- The side tables.

CREATE TABLE ledger_meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Every filing ever made. The newest row of an obligation is its current draft, with the parts that have no core column.
CREATE TABLE filings (
  id INTEGER PRIMARY KEY,
  obligation_id INTEGER NOT NULL REFERENCES obligations (id),
  epoch INTEGER NOT NULL,
  agent TEXT NOT NULL,
  idempotency_key TEXT,
  counterparty TEXT NOT NULL,
  platform TEXT NOT NULL,
  channel TEXT NOT NULL,
  thread TEXT,
  origin_user TEXT,
  subject TEXT,
  text TEXT NOT NULL,
  text_sha256 TEXT NOT NULL,
  envelope_sha256 TEXT NOT NULL,
  request_sha256 TEXT NOT NULL,
  priority TEXT NOT NULL,
  summary TEXT NOT NULL,
  context TEXT NOT NULL,
  markers TEXT NOT NULL,
  auto_send_after INTEGER,
  signal_obligation_id INTEGER,
  forced INTEGER NOT NULL,
  result TEXT NOT NULL,
  filed_us INTEGER NOT NULL,
  UNIQUE (obligation_id, epoch)
) STRICT;

CREATE UNIQUE INDEX filings_idempotency ON filings (agent, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE INDEX filings_by_obligation ON filings (obligation_id, id);

-- What an approval binds beyond the snapshot: the whole envelope, and the filing it was read from.
CREATE TABLE approval_envelopes (
  decision_id INTEGER PRIMARY KEY REFERENCES obligation_approval_snapshots (decision_id),
  obligation_id INTEGER NOT NULL REFERENCES obligations (id),
  filing_id INTEGER NOT NULL REFERENCES filings (id),
  counterparty TEXT NOT NULL,
  platform TEXT NOT NULL,
  channel TEXT NOT NULL,
  thread TEXT,
  subject TEXT,
  text_sha256 TEXT NOT NULL,
  envelope_sha256 TEXT NOT NULL,
  markers TEXT NOT NULL,
  approved_us INTEGER NOT NULL
) STRICT;

CREATE INDEX approval_envelopes_destination ON approval_envelopes (counterparty, platform, channel);

CREATE INDEX approval_envelopes_hash ON approval_envelopes (envelope_sha256, approved_us);

CREATE TABLE decision_reasons (
  decision_id INTEGER PRIMARY KEY REFERENCES obligation_decisions (id),
  reason TEXT NOT NULL
) STRICT;

-- Approvals taken out of circulation before their dispatch: a decision listed here is never claimed.
CREATE TABLE voided_approvals (
  decision_id INTEGER PRIMARY KEY REFERENCES obligation_decisions (id),
  obligation_id INTEGER NOT NULL REFERENCES obligations (id),
  kind TEXT NOT NULL CHECK (kind IN ('revoked', 'cancelled', 'expired', 'closed')),
  actor TEXT NOT NULL,
  reason TEXT NOT NULL,
  nonce TEXT UNIQUE,
  voided_us INTEGER NOT NULL
) STRICT;

-- Who holds a claim. The generation rises at each take-over and fences every later step of the earlier holder.
CREATE TABLE claim_holders (
  decision_id INTEGER PRIMARY KEY REFERENCES obligation_approval_snapshots (decision_id),
  obligation_id INTEGER NOT NULL REFERENCES obligations (id),
  worker TEXT NOT NULL,
  generation INTEGER NOT NULL,
  begun_us INTEGER
) STRICT;

CREATE TABLE delivery_attempts (
  id INTEGER PRIMARY KEY,
  obligation_id INTEGER NOT NULL REFERENCES obligations (id),
  decision_id INTEGER NOT NULL REFERENCES obligation_approval_snapshots (decision_id),
  worker TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('confirmed', 'refused', 'ambiguous')),
  stage TEXT NOT NULL,
  code TEXT NOT NULL,
  detail TEXT NOT NULL,
  coordinate TEXT,
  altered INTEGER NOT NULL,
  recorded_us INTEGER NOT NULL
) STRICT;

CREATE INDEX delivery_attempts_by_decision ON delivery_attempts (decision_id, id);

CREATE TABLE settlements (
  decision_id INTEGER PRIMARY KEY REFERENCES obligation_approval_snapshots (decision_id),
  obligation_id INTEGER NOT NULL REFERENCES obligations (id),
  operator TEXT NOT NULL,
  evidence TEXT NOT NULL,
  settled_us INTEGER NOT NULL
) STRICT;

CREATE TABLE notices (
  id INTEGER PRIMARY KEY,
  obligation_id INTEGER NOT NULL REFERENCES obligations (id),
  kind TEXT NOT NULL,
  body TEXT NOT NULL,
  routed TEXT NOT NULL CHECK (routed IN ('internal', 'retained')),
  reason TEXT NOT NULL,
  created_us INTEGER NOT NULL
) STRICT;

CREATE TABLE followups (
  id INTEGER PRIMARY KEY,
  agent TEXT NOT NULL,
  obligation_id INTEGER NOT NULL REFERENCES obligations (id),
  kind TEXT NOT NULL,
  body TEXT NOT NULL,
  created_us INTEGER NOT NULL,
  acked_us INTEGER
) STRICT;

CREATE INDEX followups_unread ON followups (agent, id) WHERE acked_us IS NULL;

CREATE INDEX followups_by_obligation ON followups (obligation_id, id);

CREATE TABLE counterparties (
  name TEXT PRIMARY KEY,
  skeleton TEXT NOT NULL,
  folded TEXT NOT NULL,
  first_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX counterparties_skeleton ON counterparties (skeleton, name);

CREATE INDEX counterparties_folded ON counterparties (folded, name);

-- Destinations whose last preparation failed, and when to try again. Not history: a row goes when a preparation succeeds.
CREATE TABLE prepare_backoff (
  platform TEXT NOT NULL,
  channel TEXT NOT NULL,
  failures INTEGER NOT NULL,
  retry_us INTEGER NOT NULL,
  error TEXT NOT NULL,
  PRIMARY KEY (platform, channel)
) STRICT, WITHOUT ROWID;

-- When a provider may next be called, in each of the scopes that it limits. Shared by all processes; not history.
CREATE TABLE pacing (
  scope TEXT PRIMARY KEY,
  next_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit_log (
  id INTEGER PRIMARY KEY,
  at_us INTEGER NOT NULL,
  event TEXT NOT NULL,
  source TEXT NOT NULL,
  actor TEXT NOT NULL,
  obligation_id INTEGER,
  decision_id INTEGER,
  detail TEXT NOT NULL
) STRICT;

CREATE INDEX audit_by_obligation ON audit_log (obligation_id, id);
