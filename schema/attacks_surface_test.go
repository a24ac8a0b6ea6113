package schema_test

const (
	rawCard = `INSERT OR REPLACE INTO cards (id, obligation_id, kind, team, channel, ts, posted_us) VALUES `
	rawView = `INSERT OR REPLACE INTO card_views (id, card_id, epoch, text_sha256, envelope_sha256, parts, complete, content_sha256, shown_us) `
)

// onSurface attacks what the operators' surface rests on: what was told, which cards stand where, and what they showed.
var onSurface = []attack{
	{"notices_sent_insert", "the notice was sent already", `INSERT OR REPLACE INTO notices_sent SELECT notice_id, 'x', 1 FROM notices_sent LIMIT 1`, ""},
	{"notices_sent_insert", "only a notice is sent", `INSERT INTO notices_sent VALUES (900, 'x', 1)`, ""},
	{"notices_sent_update", "what was told stays told", `UPDATE notices_sent SET coordinate = 'x'`, ""},
	{"notices_sent_delete", "what was told stays told", `DELETE FROM notices_sent`, ""},
	{"cards_insert", "card exists", rawCard + `(1, {drafted}, 'draft', 'T1', 'C1', '9.9', 1)`, ""},
	{"cards_insert", "card exists", rawCard + `(NULL, {approved}, 'draft', 'T1', 'C1', '1.1', 1)`, ""},
	{"cards_insert", "card ids rise by one", rawCard + `(900, {approved}, 'draft', 'T1', 'C1', '9.9', 1)`, ""},
	{"cards_insert", "a card needs its obligation", rawCard + `(NULL, 900, 'draft', 'T1', 'C1', '9.9', 1)`, ""},
	{"cards_id", "ids are positive", rawCard + `(-1, {approved}, 'draft', 'T1', 'C1', '9.9', 1)`, ""},
	{"cards_update", "cards are append-only", `UPDATE cards SET obligation_id = {approved} WHERE id = {drafted.card}`, ""},
	{"cards_delete", "cards are append-only", `DELETE FROM cards`, ""},
	{"card_views_insert", "view exists", rawView + `SELECT * FROM card_views WHERE id = {drafted.view}`, ""},
	{"card_views_insert", "view ids rise by one", rawView +
		`SELECT 900, card_id, epoch, text_sha256, envelope_sha256, parts, 1, 'x', 1 FROM card_views WHERE id = {drafted.view}`, ""},
	{"card_views_insert", "a view shows a filing of its card's obligation", rawView +
		`SELECT NULL, {drafted.card}, epoch, text_sha256, envelope_sha256, parts, 1, 'x', 1 FROM card_views WHERE id = {seen.view}`, ""},
	{"card_views_id", "ids are positive", rawView +
		`SELECT -1, card_id, epoch, text_sha256, envelope_sha256, parts, 1, 'x', 1 FROM card_views WHERE id = {drafted.view}`, ""},
	{"card_views_update", "what a card showed is append-only", `UPDATE card_views SET complete = 1, epoch = epoch + 1`, ""},
	{"card_views_delete", "what a card showed is append-only", `DELETE FROM card_views`, ""},
	{"decision_views_insert", "the decision has its view", `INSERT OR REPLACE INTO decision_views VALUES ({seen.decision}, {drafted.view})`, ""},
	{"decision_views_insert", "an approval from a card needs a complete view of its epoch", `INSERT INTO decision_views VALUES ({approved.decision}, {drafted.view})`, ""},
	{"decision_views_update", "what was decided on is append-only", `UPDATE decision_views SET view_id = {drafted.view}`, ""},
	{"decision_views_delete", "what was decided on is append-only", `DELETE FROM decision_views`, ""},
}
