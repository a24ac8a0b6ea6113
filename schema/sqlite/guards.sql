-- Guards stand in the database so that a second writer with raw SQL can't break the contract by mistake. None rests on a pragma: a
-- foreign connection has neither foreign keys nor recursive triggers, so REPLACE would delete the row in its way without firing a
-- delete trigger. Every insert and update guard therefore aborts by itself where another row holds one of the unique keys.
-- NEW.<integer primary key> is -1 in a BEFORE INSERT trigger when SQLite is to choose it; the AFTER INSERT guards keep that a safe sign,
-- for a row that really were -1 would stand in the way of every later one. Statements are separated by blank lines.

CREATE TRIGGER guard_obligations_insert BEFORE INSERT ON obligations
BEGIN
  SELECT RAISE(ABORT, 'guard: obligation id exists') WHERE EXISTS (SELECT 1 FROM obligations WHERE id = NEW.id);
  SELECT RAISE(ABORT, 'guard: obligation ids rise by one')
    WHERE NEW.id NOT IN (-1, (SELECT coalesce(max(id), 0) + 1 FROM obligations));
  SELECT RAISE(ABORT, 'guard: an epoch is from 1 to 2^53 - 1') WHERE NEW.updated_at NOT BETWEEN 1 AND 9007199254740991;
  SELECT RAISE(ABORT, 'guard: an obligation starts as open or drafted') WHERE NEW.status NOT IN ('open', 'drafted');
  SELECT RAISE(ABORT, 'guard: unknown direction') WHERE NEW.direction NOT IN ('we_owe_them', 'they_owe_us', 'none');
  SELECT RAISE(ABORT, 'guard: another draft holds this counterparty and channel') WHERE NEW.status = 'drafted' AND EXISTS (
    SELECT 1 FROM obligations WHERE status = 'drafted' AND counterparty = NEW.counterparty AND channel = NEW.channel);
  SELECT RAISE(ABORT, 'guard: an active claim holds this counterparty and channel') WHERE NEW.status = 'drafted' AND EXISTS (
    SELECT 1 FROM obligations o JOIN obligation_delivery_claims c ON c.obligation_id = o.id
    WHERE o.status = 'approved' AND o.counterparty = NEW.counterparty AND o.channel = NEW.channel
      AND c.state IN ('claimed', 'dispatching', 'unknown')
      AND NOT EXISTS (SELECT 1 FROM settlements s WHERE s.decision_id = c.decision_id));
END;

CREATE TRIGGER guard_obligations_id AFTER INSERT ON obligations
BEGIN
  SELECT RAISE(ABORT, 'guard: ids are positive') WHERE NEW.id < 1;
END;

CREATE TRIGGER guard_obligations_update BEFORE UPDATE ON obligations
BEGIN
  SELECT RAISE(ABORT, 'guard: an obligation keeps its id, counterparty and channel')
    WHERE NEW.id IS NOT OLD.id OR NEW.counterparty IS NOT OLD.counterparty OR NEW.channel IS NOT OLD.channel;
  SELECT RAISE(ABORT, 'guard: obligation is frozen by an active claim') WHERE EXISTS (
    SELECT 1 FROM obligation_delivery_claims WHERE obligation_id = OLD.id AND state IN ('claimed', 'dispatching', 'unknown'));
  SELECT RAISE(ABORT, 'guard: the epoch never goes back') WHERE NEW.updated_at < OLD.updated_at;
  SELECT RAISE(ABORT, 'guard: an epoch is from 1 to 2^53 - 1')
    WHERE NEW.updated_at <> OLD.updated_at AND NEW.updated_at NOT BETWEEN 1 AND 9007199254740991;
  SELECT RAISE(ABORT, 'guard: unknown direction') WHERE NEW.direction NOT IN ('we_owe_them', 'they_owe_us', 'none');
  SELECT RAISE(ABORT, 'guard: a changed source or direction needs a new epoch')
    WHERE (NEW.source IS NOT OLD.source OR NEW.direction IS NOT OLD.direction) AND NEW.updated_at <= OLD.updated_at;
  SELECT RAISE(ABORT, 'guard: another draft holds this counterparty and channel') WHERE NEW.status = 'drafted' AND EXISTS (
    SELECT 1 FROM obligations WHERE status = 'drafted' AND counterparty = NEW.counterparty AND channel = NEW.channel AND id <> OLD.id);
  SELECT RAISE(ABORT, 'guard: no such change of status') WHERE NEW.status IS NOT OLD.status AND (OLD.status || '>' || NEW.status) NOT IN (
    'open>drafted', 'open>closed', 'drafted>approved', 'drafted>rejected', 'drafted>closed',
    'approved>drafted', 'approved>closed', 'approved>sent', 'rejected>closed');
  SELECT RAISE(ABORT, 'guard: only a draft gets a new epoch')
    WHERE NEW.updated_at <> OLD.updated_at AND NEW.status NOT IN ('drafted', 'closed');
  SELECT RAISE(ABORT, 'guard: going back to drafted needs a new epoch')
    WHERE OLD.status = 'approved' AND NEW.status = 'drafted' AND NEW.updated_at <= OLD.updated_at;
  SELECT RAISE(ABORT, 'guard: approved needs a snapshot of this epoch and its envelope')
    WHERE OLD.status = 'drafted' AND NEW.status = 'approved' AND NOT EXISTS (
      SELECT 1 FROM obligation_approval_snapshots s JOIN approval_envelopes e ON e.decision_id = s.decision_id
      WHERE s.obligation_id = NEW.id AND s.draft_epoch = NEW.updated_at);
  SELECT RAISE(ABORT, 'guard: rejected needs a reject decision on this epoch')
    WHERE OLD.status = 'drafted' AND NEW.status = 'rejected' AND NOT EXISTS (
      SELECT 1 FROM obligation_decisions WHERE obligation_id = NEW.id AND decision = 'reject' AND draft_updated_ts = NEW.updated_at);
  SELECT RAISE(ABORT, 'guard: sent needs a receipt of a delivered claim')
    WHERE OLD.status = 'approved' AND NEW.status = 'sent' AND NOT EXISTS (
      SELECT 1 FROM obligation_delivery_claims c
      JOIN obligation_deliveries d ON d.obligation_id = c.obligation_id AND d.decision_id = c.decision_id
      WHERE c.obligation_id = NEW.id AND c.state = 'delivered' AND d.kind = 'draft_sent');
END;

CREATE TRIGGER guard_obligations_delete BEFORE DELETE ON obligations
BEGIN
  SELECT RAISE(ABORT, 'guard: obligations are never deleted');
END;

CREATE TRIGGER guard_drafts_insert BEFORE INSERT ON obligation_drafts
BEGIN
  SELECT RAISE(ABORT, 'guard: obligation is frozen by an active claim') WHERE EXISTS (
    SELECT 1 FROM obligation_delivery_claims WHERE obligation_id = NEW.obligation_id AND state IN ('claimed', 'dispatching', 'unknown'));
  SELECT RAISE(ABORT, 'guard: the obligation has a draft') WHERE EXISTS (
    SELECT 1 FROM obligation_drafts WHERE obligation_id = NEW.obligation_id);
  SELECT RAISE(ABORT, 'guard: a draft needs its drafted obligation, of the same source and channel, and its filing') WHERE NOT EXISTS (
    SELECT 1 FROM obligations o JOIN filings f ON f.obligation_id = o.id
    WHERE o.id = NEW.obligation_id AND o.status = 'drafted' AND o.source = NEW.origin_platform AND o.channel = NEW.origin_channel
      AND f.id = (SELECT max(id) FROM filings WHERE obligation_id = NEW.obligation_id)
      AND f.text = NEW.draft_text AND f.text_sha256 = NEW.draft_sha256 AND f.platform = NEW.origin_platform
      AND f.channel = NEW.origin_channel AND f.thread IS NEW.origin_thread AND f.origin_user IS NEW.origin_user
      AND f.priority = NEW.priority AND f.context IS NEW.context
      AND (NEW.auto_send_after IS NULL OR f.auto_send_after = NEW.auto_send_after));
END;

CREATE TRIGGER guard_drafts_update BEFORE UPDATE ON obligation_drafts
BEGIN
  SELECT RAISE(ABORT, 'guard: a draft keeps its obligation') WHERE NEW.obligation_id IS NOT OLD.obligation_id;
  SELECT RAISE(ABORT, 'guard: obligation is frozen by an active claim') WHERE EXISTS (
    SELECT 1 FROM obligation_delivery_claims WHERE obligation_id = OLD.obligation_id AND state IN ('claimed', 'dispatching', 'unknown'));
  SELECT RAISE(ABORT, 'guard: a draft changes only while it is drafted') WHERE NOT EXISTS (
    SELECT 1 FROM obligations WHERE id = NEW.obligation_id AND status = 'drafted');
  SELECT RAISE(ABORT, 'guard: a draft changes only to its newest filing')
    WHERE (NEW.draft_text IS NOT OLD.draft_text OR NEW.draft_sha256 IS NOT OLD.draft_sha256
      OR NEW.origin_platform IS NOT OLD.origin_platform OR NEW.origin_channel IS NOT OLD.origin_channel
      OR NEW.origin_thread IS NOT OLD.origin_thread OR NEW.origin_user IS NOT OLD.origin_user
      OR NEW.priority IS NOT OLD.priority OR NEW.context IS NOT OLD.context
      OR (NEW.auto_send_after IS NOT NULL AND NEW.auto_send_after IS NOT OLD.auto_send_after))
    AND NOT EXISTS (
      SELECT 1 FROM obligations o JOIN filings f ON f.obligation_id = o.id
      WHERE o.id = NEW.obligation_id AND o.source = NEW.origin_platform AND o.channel = NEW.origin_channel
        AND f.id = (SELECT max(id) FROM filings WHERE obligation_id = NEW.obligation_id)
        AND f.text = NEW.draft_text AND f.text_sha256 = NEW.draft_sha256 AND f.platform = NEW.origin_platform
        AND f.channel = NEW.origin_channel AND f.thread IS NEW.origin_thread AND f.origin_user IS NEW.origin_user
        AND f.priority = NEW.priority AND f.context IS NEW.context
        AND (NEW.auto_send_after IS NULL OR f.auto_send_after = NEW.auto_send_after));
END;

CREATE TRIGGER guard_drafts_delete BEFORE DELETE ON obligation_drafts
BEGIN
  SELECT RAISE(ABORT, 'guard: drafts are never deleted');
END;

CREATE TRIGGER guard_filings_insert BEFORE INSERT ON filings
BEGIN
  SELECT RAISE(ABORT, 'guard: filing exists') WHERE EXISTS (SELECT 1 FROM filings WHERE id = NEW.id)
    OR EXISTS (SELECT 1 FROM filings WHERE obligation_id = NEW.obligation_id AND epoch = NEW.epoch)
    OR EXISTS (SELECT 1 FROM filings WHERE agent = NEW.agent AND idempotency_key = NEW.idempotency_key);
  SELECT RAISE(ABORT, 'guard: filing ids rise by one')
    WHERE NEW.id NOT IN (-1, (SELECT coalesce(max(id), 0) + 1 FROM filings));
  SELECT RAISE(ABORT, 'guard: markers are a JSON array, a result is a JSON object')
    WHERE CASE WHEN json_valid(NEW.markers) THEN json_type(NEW.markers) END IS NOT 'array'
      OR CASE WHEN json_valid(NEW.result) THEN json_type(NEW.result) END IS NOT 'object';
  SELECT RAISE(ABORT, 'guard: a filing needs its drafted obligation at the same epoch') WHERE NOT EXISTS (
    SELECT 1 FROM obligations WHERE id = NEW.obligation_id AND status = 'drafted' AND direction = 'we_owe_them' AND updated_at = NEW.epoch
      AND counterparty = NEW.counterparty AND source = NEW.platform AND channel = NEW.channel);
  SELECT RAISE(ABORT, 'guard: hashes are 64 lower-case hex digits')
    WHERE length(NEW.text_sha256) <> 64 OR NEW.text_sha256 GLOB '*[^0-9a-f]*'
      OR length(NEW.envelope_sha256) <> 64 OR NEW.envelope_sha256 GLOB '*[^0-9a-f]*';
  SELECT RAISE(ABORT, 'guard: an active claim holds this counterparty and channel') WHERE EXISTS (
    SELECT 1 FROM obligations o JOIN obligation_delivery_claims c ON c.obligation_id = o.id
    WHERE o.status = 'approved' AND o.counterparty = NEW.counterparty AND o.channel = NEW.channel
      AND c.state IN ('claimed', 'dispatching', 'unknown')
      AND NOT EXISTS (SELECT 1 FROM settlements s WHERE s.decision_id = c.decision_id));
END;

CREATE TRIGGER guard_filings_id AFTER INSERT ON filings
BEGIN
  SELECT RAISE(ABORT, 'guard: ids are positive') WHERE NEW.id < 1;
END;

CREATE TRIGGER guard_filings_update BEFORE UPDATE ON filings
BEGIN
  SELECT RAISE(ABORT, 'guard: filings are append-only');
END;

CREATE TRIGGER guard_filings_delete BEFORE DELETE ON filings
BEGIN
  SELECT RAISE(ABORT, 'guard: filings are append-only');
END;

CREATE TRIGGER guard_decisions_insert BEFORE INSERT ON obligation_decisions
BEGIN
  SELECT RAISE(ABORT, 'guard: decision exists') WHERE EXISTS (SELECT 1 FROM obligation_decisions WHERE id = NEW.id)
    OR EXISTS (SELECT 1 FROM obligation_decisions WHERE nonce = NEW.nonce);
  SELECT RAISE(ABORT, 'guard: decision ids rise by one')
    WHERE NEW.id NOT IN (-1, (SELECT coalesce(max(id), 0) + 1 FROM obligation_decisions));
  SELECT RAISE(ABORT, 'guard: a decision is approve or reject, by an operator, with a nonce')
    WHERE NEW.decision NOT IN ('approve', 'reject') OR trim(NEW.operator) = '' OR NEW.nonce = '';
  SELECT RAISE(ABORT, 'guard: obligation is frozen by an active claim') WHERE EXISTS (
    SELECT 1 FROM obligation_delivery_claims WHERE obligation_id = NEW.obligation_id AND state IN ('claimed', 'dispatching', 'unknown'));
  SELECT RAISE(ABORT, 'guard: a decision needs a draft of ours at this epoch') WHERE NOT EXISTS (
    SELECT 1 FROM obligations WHERE id = NEW.obligation_id AND status = 'drafted' AND direction = 'we_owe_them'
      AND updated_at = NEW.draft_updated_ts);
END;

CREATE TRIGGER guard_decisions_id AFTER INSERT ON obligation_decisions
BEGIN
  SELECT RAISE(ABORT, 'guard: ids are positive') WHERE NEW.id < 1;
END;

CREATE TRIGGER guard_decisions_update BEFORE UPDATE ON obligation_decisions
BEGIN
  SELECT RAISE(ABORT, 'guard: decisions are append-only');
END;

CREATE TRIGGER guard_decisions_delete BEFORE DELETE ON obligation_decisions
BEGIN
  SELECT RAISE(ABORT, 'guard: decisions are append-only');
END;

CREATE TRIGGER guard_snapshots_insert BEFORE INSERT ON obligation_approval_snapshots
BEGIN
  SELECT RAISE(ABORT, 'guard: snapshot exists') WHERE EXISTS (
    SELECT 1 FROM obligation_approval_snapshots WHERE decision_id = NEW.decision_id);
  SELECT RAISE(ABORT, 'guard: a snapshot is of kind draft_sent') WHERE NEW.kind <> 'draft_sent';
  SELECT RAISE(ABORT, 'guard: hashes are 64 lower-case hex digits')
    WHERE length(NEW.draft_sha256) <> 64 OR NEW.draft_sha256 GLOB '*[^0-9a-f]*';
  SELECT RAISE(ABORT, 'guard: a snapshot equals the current authorised draft in every field') WHERE NOT EXISTS (
    SELECT 1 FROM obligation_decisions v
    JOIN obligations o ON o.id = v.obligation_id
    JOIN obligation_drafts d ON d.obligation_id = o.id
    WHERE v.id = NEW.decision_id AND v.decision = 'approve' AND o.id = NEW.obligation_id
      AND o.status = 'drafted' AND o.direction = 'we_owe_them'
      AND o.updated_at = NEW.draft_epoch AND v.draft_updated_ts = NEW.draft_epoch
      AND o.source = NEW.origin_platform AND o.channel = NEW.origin_channel
      AND d.draft_text = NEW.draft_text AND d.draft_sha256 = NEW.draft_sha256 AND d.origin_platform = NEW.origin_platform
      AND d.origin_channel = NEW.origin_channel AND d.origin_thread IS NEW.origin_thread);
END;

CREATE TRIGGER guard_snapshots_update BEFORE UPDATE ON obligation_approval_snapshots
BEGIN
  SELECT RAISE(ABORT, 'guard: snapshots never change');
END;

CREATE TRIGGER guard_snapshots_delete BEFORE DELETE ON obligation_approval_snapshots
BEGIN
  SELECT RAISE(ABORT, 'guard: snapshots are never deleted');
END;

CREATE TRIGGER guard_envelopes_insert BEFORE INSERT ON approval_envelopes
BEGIN
  SELECT RAISE(ABORT, 'guard: envelope exists') WHERE EXISTS (SELECT 1 FROM approval_envelopes WHERE decision_id = NEW.decision_id);
  SELECT RAISE(ABORT, 'guard: markers are a JSON array') WHERE CASE WHEN json_valid(NEW.markers) THEN json_type(NEW.markers) END IS NOT 'array';
  SELECT RAISE(ABORT, 'guard: an envelope equals its snapshot and the newest filing') WHERE NOT EXISTS (
    SELECT 1 FROM obligation_approval_snapshots s JOIN filings f ON f.obligation_id = s.obligation_id
    JOIN obligations o ON o.id = s.obligation_id
    WHERE s.decision_id = NEW.decision_id AND s.obligation_id = NEW.obligation_id AND f.id = NEW.filing_id
      AND o.status = 'drafted' AND o.updated_at = s.draft_epoch AND o.counterparty = NEW.counterparty
      AND f.id = (SELECT max(id) FROM filings WHERE obligation_id = NEW.obligation_id)
      AND s.draft_sha256 = NEW.text_sha256 AND s.origin_platform = NEW.platform AND s.origin_channel = NEW.channel
      AND s.origin_thread IS NEW.thread AND f.text = s.draft_text
      AND f.text_sha256 = NEW.text_sha256 AND f.envelope_sha256 = NEW.envelope_sha256 AND f.platform = NEW.platform
      AND f.channel = NEW.channel AND f.thread IS NEW.thread AND f.subject IS NEW.subject AND f.markers = NEW.markers);
END;

CREATE TRIGGER guard_envelopes_update BEFORE UPDATE ON approval_envelopes
BEGIN
  SELECT RAISE(ABORT, 'guard: approved envelopes never change');
END;

CREATE TRIGGER guard_envelopes_delete BEFORE DELETE ON approval_envelopes
BEGIN
  SELECT RAISE(ABORT, 'guard: approved envelopes are never deleted');
END;

CREATE TRIGGER guard_claims_insert BEFORE INSERT ON obligation_delivery_claims
BEGIN
  SELECT RAISE(ABORT, 'guard: a claim starts as claimed, with a token') WHERE NEW.state <> 'claimed' OR NEW.token = ''
    OR NEW.reconciliation_evidence IS NOT NULL OR NEW.updated_ts < NEW.created_ts;
  SELECT RAISE(ABORT, 'guard: the decision has a claim') WHERE EXISTS (
    SELECT 1 FROM obligation_delivery_claims WHERE decision_id = NEW.decision_id);
  SELECT RAISE(ABORT, 'guard: the token has a claim') WHERE EXISTS (
    SELECT 1 FROM obligation_delivery_claims WHERE token = NEW.token);
  SELECT RAISE(ABORT, 'guard: obligation is frozen by an active claim') WHERE EXISTS (
    SELECT 1 FROM obligation_delivery_claims WHERE obligation_id = NEW.obligation_id AND state IN ('claimed', 'dispatching', 'unknown'));
  SELECT RAISE(ABORT, 'guard: the decision has a receipt') WHERE EXISTS (
    SELECT 1 FROM obligation_deliveries WHERE obligation_id = NEW.obligation_id AND decision_id = NEW.decision_id);
  SELECT RAISE(ABORT, 'guard: the approval was taken out of circulation') WHERE EXISTS (
    SELECT 1 FROM voided_approvals WHERE decision_id = NEW.decision_id);
  SELECT RAISE(ABORT, 'guard: a claim needs an approved snapshot that equals the current draft') WHERE NOT EXISTS (
    SELECT 1 FROM obligation_approval_snapshots s
    JOIN obligation_decisions v ON v.id = s.decision_id
    JOIN approval_envelopes e ON e.decision_id = s.decision_id
    JOIN obligations o ON o.id = s.obligation_id
    JOIN obligation_drafts d ON d.obligation_id = o.id
    WHERE s.decision_id = NEW.decision_id AND s.obligation_id = NEW.obligation_id AND v.decision = 'approve'
      AND o.status = 'approved' AND o.direction = 'we_owe_them' AND o.updated_at = s.draft_epoch
      AND v.draft_updated_ts = s.draft_epoch AND v.obligation_id = s.obligation_id
      AND o.source = s.origin_platform AND o.channel = s.origin_channel
      AND d.draft_text = s.draft_text AND d.draft_sha256 = s.draft_sha256 AND d.origin_platform = s.origin_platform
      AND d.origin_channel = s.origin_channel AND d.origin_thread IS s.origin_thread
      AND e.obligation_id = s.obligation_id AND e.text_sha256 = s.draft_sha256 AND e.platform = s.origin_platform
      AND e.channel = s.origin_channel AND e.thread IS s.origin_thread AND e.counterparty = o.counterparty
      AND e.filing_id = (SELECT max(id) FROM filings WHERE obligation_id = s.obligation_id));
END;

CREATE TRIGGER guard_claims_update BEFORE UPDATE ON obligation_delivery_claims
BEGIN
  SELECT RAISE(ABORT, 'guard: a claim keeps its identity') WHERE NEW.obligation_id IS NOT OLD.obligation_id
    OR NEW.decision_id IS NOT OLD.decision_id OR NEW.token IS NOT OLD.token OR NEW.created_ts IS NOT OLD.created_ts;
  SELECT RAISE(ABORT, 'guard: a claim''s clock never runs back') WHERE NEW.updated_ts < OLD.updated_ts;
  SELECT RAISE(ABORT, 'guard: no such change of a claim''s state') WHERE (OLD.state || '>' || NEW.state) NOT IN (
    'claimed>dispatching', 'claimed>cancelled', 'dispatching>delivered', 'dispatching>unknown', 'unknown>delivered');
  SELECT RAISE(ABORT, 'guard: delivered needs a receipt') WHERE NEW.state = 'delivered' AND NOT EXISTS (
    SELECT 1 FROM obligation_deliveries WHERE obligation_id = NEW.obligation_id AND decision_id = NEW.decision_id AND kind = 'draft_sent');
  SELECT RAISE(ABORT, 'guard: an unknown claim is delivered only with evidence, and only there evidence is written')
    WHERE (OLD.state = 'unknown' AND trim(coalesce(NEW.reconciliation_evidence, '')) = '')
      OR (OLD.state <> 'unknown' AND NEW.reconciliation_evidence IS NOT NULL);
END;

CREATE TRIGGER guard_claims_delete BEFORE DELETE ON obligation_delivery_claims
BEGIN
  SELECT RAISE(ABORT, 'guard: claims are never deleted');
END;

CREATE TRIGGER guard_deliveries_insert BEFORE INSERT ON obligation_deliveries
BEGIN
  SELECT RAISE(ABORT, 'guard: receipt exists') WHERE EXISTS (SELECT 1 FROM obligation_deliveries WHERE id = NEW.id)
    OR EXISTS (SELECT 1 FROM obligation_deliveries WHERE obligation_id = NEW.obligation_id AND decision_id IS NEW.decision_id);
  SELECT RAISE(ABORT, 'guard: receipt ids rise by one')
    WHERE NEW.id NOT IN (-1, (SELECT coalesce(max(id), 0) + 1 FROM obligation_deliveries));
  SELECT RAISE(ABORT, 'guard: unknown kind of receipt') WHERE NEW.kind NOT IN ('draft_sent', 'reject_notice', 'manual_notice');
  SELECT RAISE(ABORT, 'guard: a receipt for a sent draft needs its coordinate and a dispatching or unknown claim')
    WHERE NEW.kind = 'draft_sent' AND (trim(coalesce(NEW.coordinate, '')) = '' OR NOT EXISTS (
      SELECT 1 FROM obligation_delivery_claims WHERE obligation_id = NEW.obligation_id AND decision_id = NEW.decision_id
        AND state IN ('dispatching', 'unknown')));
  SELECT RAISE(ABORT, 'guard: a claimed decision has no other receipt than draft_sent') WHERE NEW.kind <> 'draft_sent' AND EXISTS (
    SELECT 1 FROM obligation_delivery_claims WHERE decision_id = NEW.decision_id);
  SELECT RAISE(ABORT, 'guard: obligation is frozen by an active claim') WHERE NEW.kind <> 'draft_sent' AND EXISTS (
    SELECT 1 FROM obligation_delivery_claims WHERE obligation_id = NEW.obligation_id AND state IN ('claimed', 'dispatching', 'unknown'));
  SELECT RAISE(ABORT, 'guard: a rejection''s receipt needs the rejection') WHERE NEW.kind = 'reject_notice' AND NOT EXISTS (
    SELECT 1 FROM obligation_decisions WHERE id = NEW.decision_id AND obligation_id = NEW.obligation_id AND decision = 'reject');
  SELECT RAISE(ABORT, 'guard: a receipt needs its obligation, and a decision on it')
    WHERE NOT EXISTS (SELECT 1 FROM obligations WHERE id = NEW.obligation_id)
      OR (NEW.decision_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM obligation_decisions WHERE id = NEW.decision_id AND obligation_id = NEW.obligation_id));
END;

CREATE TRIGGER guard_deliveries_id AFTER INSERT ON obligation_deliveries
BEGIN
  SELECT RAISE(ABORT, 'guard: ids are positive') WHERE NEW.id < 1;
END;

CREATE TRIGGER guard_deliveries_update BEFORE UPDATE ON obligation_deliveries
BEGIN
  SELECT RAISE(ABORT, 'guard: receipts never change');
END;

CREATE TRIGGER guard_deliveries_delete BEFORE DELETE ON obligation_deliveries
BEGIN
  SELECT RAISE(ABORT, 'guard: receipts are never deleted');
END;

CREATE TRIGGER guard_reasons_insert BEFORE INSERT ON decision_reasons
BEGIN
  SELECT RAISE(ABORT, 'guard: reason exists') WHERE EXISTS (SELECT 1 FROM decision_reasons WHERE decision_id = NEW.decision_id);
  SELECT RAISE(ABORT, 'guard: a reason needs its decision') WHERE NOT EXISTS (
    SELECT 1 FROM obligation_decisions WHERE id = NEW.decision_id);
END;

CREATE TRIGGER guard_reasons_update BEFORE UPDATE ON decision_reasons
BEGIN
  SELECT RAISE(ABORT, 'guard: reasons are append-only');
END;

CREATE TRIGGER guard_reasons_delete BEFORE DELETE ON decision_reasons
BEGIN
  SELECT RAISE(ABORT, 'guard: reasons are append-only');
END;

CREATE TRIGGER guard_voided_insert BEFORE INSERT ON voided_approvals
BEGIN
  SELECT RAISE(ABORT, 'guard: approval is out of circulation already') WHERE EXISTS (
    SELECT 1 FROM voided_approvals WHERE decision_id = NEW.decision_id OR nonce = NEW.nonce);
  SELECT RAISE(ABORT, 'guard: only an approval is taken out of circulation') WHERE NOT EXISTS (
    SELECT 1 FROM obligation_decisions WHERE id = NEW.decision_id AND obligation_id = NEW.obligation_id AND decision = 'approve');
  SELECT RAISE(ABORT, 'guard: an approval in dispatch can''t be taken back') WHERE EXISTS (
    SELECT 1 FROM obligation_delivery_claims WHERE decision_id = NEW.decision_id AND state <> 'cancelled');
END;

CREATE TRIGGER guard_voided_update BEFORE UPDATE ON voided_approvals
BEGIN
  SELECT RAISE(ABORT, 'guard: voided approvals are append-only');
END;

CREATE TRIGGER guard_voided_delete BEFORE DELETE ON voided_approvals
BEGIN
  SELECT RAISE(ABORT, 'guard: voided approvals are append-only');
END;

CREATE TRIGGER guard_holders_insert BEFORE INSERT ON claim_holders
BEGIN
  SELECT RAISE(ABORT, 'guard: the claim has a holder') WHERE EXISTS (SELECT 1 FROM claim_holders WHERE decision_id = NEW.decision_id);
  SELECT RAISE(ABORT, 'guard: a holder starts with generation 1 and its fresh claim') WHERE NEW.generation <> 1 OR NEW.begun_us IS NOT NULL
    OR NOT EXISTS (SELECT 1 FROM obligation_delivery_claims WHERE decision_id = NEW.decision_id AND obligation_id = NEW.obligation_id
      AND state = 'claimed');
END;

CREATE TRIGGER guard_holders_update BEFORE UPDATE ON claim_holders
BEGIN
  SELECT RAISE(ABORT, 'guard: a holder keeps its claim') WHERE NEW.decision_id IS NOT OLD.decision_id OR NEW.obligation_id IS NOT OLD.obligation_id;
  SELECT RAISE(ABORT, 'guard: a take-over raises the generation by one') WHERE NEW.generation NOT IN (OLD.generation, OLD.generation + 1)
    OR (NEW.generation = OLD.generation AND NEW.worker IS NOT OLD.worker);
  SELECT RAISE(ABORT, 'guard: a dispatch begins once') WHERE OLD.begun_us IS NOT NULL AND NEW.begun_us IS NOT OLD.begun_us;
  SELECT RAISE(ABORT, 'guard: only a dispatching claim has begun') WHERE NEW.begun_us IS NOT OLD.begun_us AND NOT EXISTS (
    SELECT 1 FROM obligation_delivery_claims WHERE decision_id = NEW.decision_id AND state = 'dispatching');
END;

CREATE TRIGGER guard_holders_delete BEFORE DELETE ON claim_holders
BEGIN
  SELECT RAISE(ABORT, 'guard: holders are never deleted');
END;

CREATE TRIGGER guard_attempts_insert BEFORE INSERT ON delivery_attempts
BEGIN
  SELECT RAISE(ABORT, 'guard: attempt exists') WHERE EXISTS (SELECT 1 FROM delivery_attempts WHERE id = NEW.id);
  SELECT RAISE(ABORT, 'guard: attempt ids rise by one')
    WHERE NEW.id NOT IN (-1, (SELECT coalesce(max(id), 0) + 1 FROM delivery_attempts));
  SELECT RAISE(ABORT, 'guard: an attempt needs its claim') WHERE NOT EXISTS (
    SELECT 1 FROM obligation_delivery_claims WHERE obligation_id = NEW.obligation_id AND decision_id = NEW.decision_id);
END;

CREATE TRIGGER guard_attempts_id AFTER INSERT ON delivery_attempts
BEGIN
  SELECT RAISE(ABORT, 'guard: ids are positive') WHERE NEW.id < 1;
END;

CREATE TRIGGER guard_attempts_update BEFORE UPDATE ON delivery_attempts
BEGIN
  SELECT RAISE(ABORT, 'guard: attempts are append-only');
END;

CREATE TRIGGER guard_attempts_delete BEFORE DELETE ON delivery_attempts
BEGIN
  SELECT RAISE(ABORT, 'guard: attempts are append-only');
END;

CREATE TRIGGER guard_settlements_insert BEFORE INSERT ON settlements
BEGIN
  SELECT RAISE(ABORT, 'guard: settled already') WHERE EXISTS (SELECT 1 FROM settlements WHERE decision_id = NEW.decision_id);
  SELECT RAISE(ABORT, 'guard: only an unknown claim is settled, by an operator with evidence')
    WHERE trim(NEW.operator) = '' OR trim(NEW.evidence) = '' OR NOT EXISTS (
      SELECT 1 FROM obligation_delivery_claims WHERE decision_id = NEW.decision_id AND obligation_id = NEW.obligation_id AND state = 'unknown');
END;

CREATE TRIGGER guard_settlements_update BEFORE UPDATE ON settlements
BEGIN
  SELECT RAISE(ABORT, 'guard: settlements are append-only');
END;

CREATE TRIGGER guard_settlements_delete BEFORE DELETE ON settlements
BEGIN
  SELECT RAISE(ABORT, 'guard: settlements are append-only');
END;

CREATE TRIGGER guard_notices_insert BEFORE INSERT ON notices
BEGIN
  SELECT RAISE(ABORT, 'guard: notice exists') WHERE EXISTS (SELECT 1 FROM notices WHERE id = NEW.id);
  SELECT RAISE(ABORT, 'guard: notice ids rise by one')
    WHERE NEW.id NOT IN (-1, (SELECT coalesce(max(id), 0) + 1 FROM notices));
  SELECT RAISE(ABORT, 'guard: a notice needs its obligation') WHERE NOT EXISTS (
    SELECT 1 FROM obligations WHERE id = NEW.obligation_id);
END;

CREATE TRIGGER guard_notices_id AFTER INSERT ON notices
BEGIN
  SELECT RAISE(ABORT, 'guard: ids are positive') WHERE NEW.id < 1;
END;

CREATE TRIGGER guard_notices_update BEFORE UPDATE ON notices
BEGIN
  SELECT RAISE(ABORT, 'guard: notices never change');
END;

CREATE TRIGGER guard_notices_delete BEFORE DELETE ON notices
BEGIN
  SELECT RAISE(ABORT, 'guard: notices are never lost');
END;

CREATE TRIGGER guard_followups_insert BEFORE INSERT ON followups
BEGIN
  SELECT RAISE(ABORT, 'guard: follow-up exists') WHERE EXISTS (SELECT 1 FROM followups WHERE id = NEW.id);
  SELECT RAISE(ABORT, 'guard: follow-up ids rise by one')
    WHERE NEW.id NOT IN (-1, (SELECT coalesce(max(id), 0) + 1 FROM followups));
  SELECT RAISE(ABORT, 'guard: a follow-up needs its obligation') WHERE NOT EXISTS (
    SELECT 1 FROM obligations WHERE id = NEW.obligation_id);
END;

CREATE TRIGGER guard_followups_id AFTER INSERT ON followups
BEGIN
  SELECT RAISE(ABORT, 'guard: ids are positive') WHERE NEW.id < 1;
END;

CREATE TRIGGER guard_followups_update BEFORE UPDATE ON followups
BEGIN
  SELECT RAISE(ABORT, 'guard: a follow-up is only acknowledged, once') WHERE NEW.id IS NOT OLD.id OR NEW.agent IS NOT OLD.agent
    OR NEW.obligation_id IS NOT OLD.obligation_id OR NEW.kind IS NOT OLD.kind OR NEW.body IS NOT OLD.body
    OR NEW.created_us IS NOT OLD.created_us OR OLD.acked_us IS NOT NULL OR NEW.acked_us IS NULL;
END;

CREATE TRIGGER guard_followups_delete BEFORE DELETE ON followups
BEGIN
  SELECT RAISE(ABORT, 'guard: follow-ups are never lost');
END;

CREATE TRIGGER guard_counterparties_insert BEFORE INSERT ON counterparties
BEGIN
  SELECT RAISE(ABORT, 'guard: counterparty is known') WHERE EXISTS (SELECT 1 FROM counterparties WHERE name = NEW.name);
END;

CREATE TRIGGER guard_counterparties_update BEFORE UPDATE ON counterparties
BEGIN
  SELECT RAISE(ABORT, 'guard: counterparties are append-only');
END;

CREATE TRIGGER guard_counterparties_delete BEFORE DELETE ON counterparties
BEGIN
  SELECT RAISE(ABORT, 'guard: counterparties are append-only');
END;

CREATE TRIGGER guard_meta_insert BEFORE INSERT ON ledger_meta
BEGIN
  SELECT RAISE(ABORT, 'guard: the ledger''s own facts never change') WHERE EXISTS (SELECT 1 FROM ledger_meta WHERE key = NEW.key);
END;

CREATE TRIGGER guard_meta_update BEFORE UPDATE ON ledger_meta
BEGIN
  SELECT RAISE(ABORT, 'guard: the ledger''s own facts never change');
END;

CREATE TRIGGER guard_meta_delete BEFORE DELETE ON ledger_meta
BEGIN
  SELECT RAISE(ABORT, 'guard: the ledger''s own facts never change');
END;

CREATE TRIGGER guard_audit_insert BEFORE INSERT ON audit_log
BEGIN
  SELECT RAISE(ABORT, 'guard: audit row exists') WHERE EXISTS (SELECT 1 FROM audit_log WHERE id = NEW.id);
  SELECT RAISE(ABORT, 'guard: audit rows are appended in order')
    WHERE NEW.id NOT IN (-1, (SELECT coalesce(max(id), 0) + 1 FROM audit_log));
  SELECT RAISE(ABORT, 'guard: the detail of an audit row is a JSON object')
    WHERE CASE WHEN json_valid(NEW.detail) THEN json_type(NEW.detail) END IS NOT 'object';
END;

CREATE TRIGGER guard_audit_id AFTER INSERT ON audit_log
BEGIN
  SELECT RAISE(ABORT, 'guard: ids are positive') WHERE NEW.id < 1;
END;

CREATE TRIGGER guard_audit_update BEFORE UPDATE ON audit_log
BEGIN
  SELECT RAISE(ABORT, 'guard: the audit log is append-only');
END;

CREATE TRIGGER guard_audit_delete BEFORE DELETE ON audit_log
BEGIN
  SELECT RAISE(ABORT, 'guard: the audit log is append-only');
END;

CREATE TRIGGER guard_notices_sent_insert BEFORE INSERT ON notices_sent
BEGIN
  SELECT RAISE(ABORT, 'guard: the notice was sent already') WHERE EXISTS (SELECT 1 FROM notices_sent WHERE notice_id = NEW.notice_id);
  SELECT RAISE(ABORT, 'guard: only a notice is sent') WHERE NOT EXISTS (SELECT 1 FROM notices WHERE id = NEW.notice_id);
END;

CREATE TRIGGER guard_notices_sent_update BEFORE UPDATE ON notices_sent
BEGIN
  SELECT RAISE(ABORT, 'guard: what was told stays told');
END;

CREATE TRIGGER guard_notices_sent_delete BEFORE DELETE ON notices_sent
BEGIN
  SELECT RAISE(ABORT, 'guard: what was told stays told');
END;

CREATE TRIGGER guard_cards_insert BEFORE INSERT ON cards
BEGIN
  SELECT RAISE(ABORT, 'guard: card exists') WHERE EXISTS (
    SELECT 1 FROM cards WHERE id = NEW.id OR (channel = NEW.channel AND ts = NEW.ts));
  SELECT RAISE(ABORT, 'guard: card ids rise by one') WHERE NEW.id NOT IN (-1, (SELECT coalesce(max(id), 0) + 1 FROM cards));
  SELECT RAISE(ABORT, 'guard: a card needs its obligation') WHERE NOT EXISTS (SELECT 1 FROM obligations WHERE id = NEW.obligation_id);
END;

CREATE TRIGGER guard_cards_update BEFORE UPDATE ON cards
BEGIN
  SELECT RAISE(ABORT, 'guard: cards are append-only');
END;

CREATE TRIGGER guard_cards_delete BEFORE DELETE ON cards
BEGIN
  SELECT RAISE(ABORT, 'guard: cards are append-only');
END;

CREATE TRIGGER guard_cards_id AFTER INSERT ON cards
BEGIN
  SELECT RAISE(ABORT, 'guard: ids are positive') WHERE NEW.id < 1;
END;

CREATE TRIGGER guard_card_views_insert BEFORE INSERT ON card_views
BEGIN
  SELECT RAISE(ABORT, 'guard: view exists') WHERE EXISTS (SELECT 1 FROM card_views WHERE id = NEW.id);
  SELECT RAISE(ABORT, 'guard: view ids rise by one') WHERE NEW.id NOT IN (-1, (SELECT coalesce(max(id), 0) + 1 FROM card_views));
  SELECT RAISE(ABORT, 'guard: a view shows a filing of its card''s obligation') WHERE NOT EXISTS (
    SELECT 1 FROM cards c JOIN filings f ON f.obligation_id = c.obligation_id
    WHERE c.id = NEW.card_id AND f.text_sha256 = NEW.text_sha256 AND f.envelope_sha256 = NEW.envelope_sha256 AND f.epoch <= NEW.epoch);
END;

CREATE TRIGGER guard_card_views_update BEFORE UPDATE ON card_views
BEGIN
  SELECT RAISE(ABORT, 'guard: what a card showed is append-only');
END;

CREATE TRIGGER guard_card_views_delete BEFORE DELETE ON card_views
BEGIN
  SELECT RAISE(ABORT, 'guard: what a card showed is append-only');
END;

CREATE TRIGGER guard_card_views_id AFTER INSERT ON card_views
BEGIN
  SELECT RAISE(ABORT, 'guard: ids are positive') WHERE NEW.id < 1;
END;

CREATE TRIGGER guard_decision_views_insert BEFORE INSERT ON decision_views
BEGIN
  SELECT RAISE(ABORT, 'guard: the decision has its view') WHERE EXISTS (SELECT 1 FROM decision_views WHERE decision_id = NEW.decision_id);
  SELECT RAISE(ABORT, 'guard: an approval from a card needs a complete view of its epoch') WHERE NOT EXISTS (
    SELECT 1 FROM obligation_decisions d
    JOIN card_views v ON v.id = NEW.view_id
    JOIN cards c ON c.id = v.card_id AND c.obligation_id = d.obligation_id
    WHERE d.id = NEW.decision_id AND (d.decision = 'reject' OR (v.complete = 1 AND v.epoch = d.draft_updated_ts)));
END;

CREATE TRIGGER guard_decision_views_update BEFORE UPDATE ON decision_views
BEGIN
  SELECT RAISE(ABORT, 'guard: what was decided on is append-only');
END;

CREATE TRIGGER guard_decision_views_delete BEFORE DELETE ON decision_views
BEGIN
  SELECT RAISE(ABORT, 'guard: what was decided on is append-only');
END;
