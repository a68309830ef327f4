"""The statements that all databases share, by name.

Parameters are `?` or `:name`. A message's *place* is `topic << 44 | offset`, so that a topic is one contiguous range of
a B-tree: 524,287 topics of 17 million million messages each.
"""

from collections.abc import Collection

OFFSET_BITS = 44
MAX_OFFSET = (1 << OFFSET_BITS) - 1

# Labels are kept by blocks of so many places. All that one commit adds then goes into a few pages, however many
# keys there are, where one order over the whole topic would be a page for each key; looking one up is a seek for
# each block instead of one seek.
BLOCK_BITS = 12


def among(ids: Collection[int]) -> str:
    """The ids as a list that an IN takes, which must not be empty: no topic is 0."""
    return f"({', '.join(map(str, sorted(ids) or [0]))})"


def one_of(count: int) -> str:
    """So many parameters as a list that an IN takes: the statement's text stays the same, and is parsed once."""
    return f"({', '.join(['?'] * count)})"


# --- schema

SCHEMA_VERSION = "SELECT version FROM brook_schema"

SET_SCHEMA_VERSION = "UPDATE brook_schema SET version = ?"

# --- topics

ALL_TOPICS = "SELECT name, id FROM brook_topic"

ADD_TOPIC = "INSERT INTO brook_topic (name) VALUES (?)"

RULES = "SELECT id, rule FROM brook_topic"

SET_RULE = "UPDATE brook_topic SET rule = ? WHERE id = ?"

UNREADABLE = "SELECT id FROM brook_topic WHERE rule IN ('write-only', 'closed')"

# Groups that follow everything get the topics that they do not have yet, from the start.
FOLLOW_NEW_TOPICS = """
    INSERT INTO brook_progress (group_id, topic, next)
    SELECT g.id, t.id, 0 FROM brook_group g, brook_topic t
    WHERE g.follows_all AND NOT EXISTS (SELECT 1 FROM brook_progress p WHERE p.group_id = g.id AND p.topic = t.id)
"""

# --- sending


def next_offsets(topics: Collection[int]) -> str:
    return f"""
        SELECT t.id, e.next, t.rule FROM brook_topic t JOIN brook_end e ON e.topic = t.id
        WHERE t.id IN {among(topics)} ORDER BY t.id
    """


ADD_BODY = "INSERT INTO brook_body (id, data, sizes, extras) VALUES (?, ?, ?, ?)"

ADD_RUN = """
    INSERT INTO brook_run (place, count, sent, body, bytes, sender, data, sizes, extras)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

MOVE_NEXT_OFFSET = "UPDATE brook_topic SET next = ? WHERE id = ?"

# --- groups

GROUP = "SELECT id, ordered, tags, follows_all FROM brook_group WHERE name = ?"

ADD_GROUP = "INSERT INTO brook_group (name, follows_all, ordered, tags) VALUES (?, ?, ?, ?)"

CHANGE_GROUP = "UPDATE brook_group SET follows_all = ?, ordered = ?, tags = ? WHERE id = ?"

ALL_GROUPS = "SELECT name FROM brook_group ORDER BY id"

FOLLOW = "INSERT INTO brook_progress (group_id, topic, next) VALUES (?, ?, ?)"

FOLLOWED = "SELECT topic FROM brook_progress WHERE group_id = ?"

# Messages of the group's topics that are not done: not claimed yet, claimed, and waiting for a retry.
LAG = """
    SELECT
        (SELECT coalesce(sum(e.next - p.next), 0)
         FROM brook_progress p JOIN brook_end e ON e.topic = p.topic WHERE p.group_id = :group_id)
        +
        (SELECT coalesce(sum(c.count), 0)
         FROM brook_receipt r JOIN brook_claim c ON c.receipt = r.id WHERE r.group_id = :group_id)
        +
        (SELECT coalesce(sum(count), 0) FROM brook_retry WHERE group_id = :group_id)
"""

# --- positions

TOPIC_END = "SELECT next FROM brook_end WHERE topic = ?"

FIRST_PLACE = "SELECT min(place) FROM brook_run WHERE place >= ? AND place < ?"

# Clocks may be set back: this looks at the runs one after the other.
FIRST_PLACE_SINCE = """
    SELECT place FROM brook_run WHERE place >= ? AND place < ? AND sent >= ? ORDER BY place LIMIT 1
"""

# What a group has in flight in the places from one to before another, and what it has given up there.
DROP_CLAIMS_BETWEEN = """
    DELETE FROM brook_claim
    WHERE receipt IN (SELECT id FROM brook_receipt WHERE group_id = ?) AND place >= ? AND place < ?
"""

DROP_EMPTY_RECEIPTS = """
    DELETE FROM brook_receipt
    WHERE group_id = ? AND NOT EXISTS (SELECT 1 FROM brook_claim WHERE receipt = brook_receipt.id)
"""

DROP_RETRIES_BETWEEN = "DELETE FROM brook_retry WHERE group_id = ? AND place >= ? AND place < ?"

DROP_DEAD_BETWEEN = "DELETE FROM brook_dead WHERE group_id = ? AND place >= ? AND place < ?"

# --- reading

# The first so many runs that hold a number of places from one on. The first of them may begin before the place.
RUNS_FROM = """
    SELECT :place, :count, :attempts, r.place, r.count, r.sent, coalesce(r.data, b.data), coalesce(r.sizes, b.sizes),
        coalesce(r.extras, b.extras)
    FROM brook_run r LEFT JOIN brook_body b ON b.id = r.body
    WHERE r.place >= coalesce((SELECT max(place) FROM brook_run WHERE place <= :place), :place)
      AND r.place < :place + :count
      AND r.place + r.count > :place
      AND (r.body = 0 OR b.id IS NOT NULL)
    ORDER BY r.place LIMIT :runs
"""

# Where the run begins that holds a place, of those from a first place on.
RUN_AT = "SELECT coalesce(max(place), :place) FROM brook_run WHERE place >= :first AND place <= :place"

ADD_LABEL = "INSERT INTO brook_label (block, label, place) VALUES (?, ?, ?)"

# As RUNS_FROM, of the runs of a block that hold a label.
LABELLED_RUNS = """
    SELECT :place, :count, 0, r.place, r.count, r.sent, coalesce(r.data, b.data), coalesce(r.sizes, b.sizes),
        coalesce(r.extras, b.extras)
    FROM brook_label l JOIN brook_run r ON r.place = l.place LEFT JOIN brook_body b ON b.id = r.body
    WHERE l.block = :block AND l.label = :label AND l.place < :place + :count AND r.place + r.count > :place
      AND (r.body = 0 OR b.id IS NOT NULL)
    ORDER BY l.place LIMIT :runs
"""

LABELLED_BLOCKS = "SELECT DISTINCT block FROM brook_label WHERE block >= ? AND block <= ?"

FILLED_BLOCK = "SELECT :block FROM brook_run WHERE place >= :first AND place < :end LIMIT 1"

DROP_LABELS = "DELETE FROM brook_label WHERE block = ?"

# --- claiming

# The topics of the group that have messages which nobody has claimed.
READY = """
    SELECT p.topic, p.next, e.next - p.next FROM brook_progress p JOIN brook_end e ON e.topic = p.topic
    WHERE p.group_id = (SELECT id FROM brook_group WHERE name = ?) AND e.next > p.next
"""

# The claims that are out, by owner.
RECEIPTS = """
    SELECT id, client, expires FROM brook_receipt WHERE group_id = (SELECT id FROM brook_group WHERE name = ?)
"""

ADD_RECEIPT = """
    INSERT INTO brook_receipt (group_id, client, thread, claimed, expires) VALUES (?, ?, ?, ?, ?)
"""

ADD_CLAIM = "INSERT INTO brook_claim (receipt, place, count, attempts) VALUES (?, ?, ?, ?)"

DROP_CLAIM = "DELETE FROM brook_claim WHERE receipt = ? AND place = ?"

MOVE_PROGRESS = "UPDATE brook_progress SET next = ? WHERE group_id = ? AND topic = ?"

DROP_EMPTY_RECEIPT = """
    DELETE FROM brook_receipt
    WHERE id = ? AND NOT EXISTS (SELECT 1 FROM brook_claim WHERE receipt = brook_receipt.id)
"""


def these_receipts(count: int) -> str:
    return f"SELECT id, group_id FROM brook_receipt WHERE id IN {one_of(count)} ORDER BY id"


def claims_of(count: int) -> str:
    """Of so many receipts."""
    return f"""
        SELECT receipt, place, count, attempts FROM brook_claim WHERE receipt IN {one_of(count)} ORDER BY receipt, place
    """


# --- retries and dead letters

ADD_RETRY = """
    INSERT INTO brook_retry (group_id, place, count, attempts, due, cause, `key`) VALUES (?, ?, ?, ?, ?, ?, ?)
"""

NEXT_DUE = "SELECT min(due) FROM brook_retry WHERE group_id = (SELECT id FROM brook_group WHERE name = ?)"


def due(topics: Collection[int] | None, taken: Collection[int]) -> str:
    """In the order of places, which keeps the order of a key; of all topics, or of some, but of none that is taken."""
    wanted = "" if topics is None else f"AND place >> {OFFSET_BITS} IN {among(topics)}"
    return f"""
        SELECT place, count, attempts, due, cause, `key` FROM brook_retry
        WHERE group_id = :group_id AND due <= :now AND place >> {OFFSET_BITS} NOT IN {among(taken)} {wanted}
        ORDER BY place LIMIT :limit
    """


DROP_RETRY = "DELETE FROM brook_retry WHERE group_id = ? AND place = ?"

# The keys that wait in an ordered group, by the place of the first message that waits.
WAITING_KEYS = """
    SELECT place, `key`, due FROM brook_retry
    WHERE group_id = (SELECT group_id FROM brook_receipt WHERE id = ?) AND `key` IS NOT NULL ORDER BY place DESC
"""

ADD_DEAD = "REPLACE INTO brook_dead (group_id, place, attempts, died, cause) VALUES (?, ?, ?, ?, ?)"

# Between two places, of every offset or of one.
DEAD = f"""
    SELECT place, attempts, died, cause FROM brook_dead
    WHERE group_id = :group_id AND place >= :first AND place < :end
      AND place & {MAX_OFFSET} = coalesce(:offset, place & {MAX_OFFSET})
    ORDER BY place LIMIT :limit
"""

DROP_DEAD = "DELETE FROM brook_dead WHERE group_id = ? AND place = ?"

# --- after claiming

DROP_CLAIMS = "DELETE FROM brook_claim WHERE receipt = ?"

DROP_RECEIPT = "DELETE FROM brook_receipt WHERE id = ?"

RENEW = "UPDATE brook_receipt SET expires = ? WHERE id = ?"

EXPIRE_ALL_OF = "UPDATE brook_receipt SET expires = 0 WHERE client = ?"


def claimed_counts(count: int, by_key: str) -> str:
    """Of so many receipts; to be locked, both the receipts and what they hold."""
    return f"""
        SELECT r.id, c.count FROM brook_receipt r {by_key} LEFT JOIN brook_claim c ON c.receipt = r.id
        WHERE r.id IN {one_of(count)}
    """


# --- retention

STORED_BYTES = "SELECT coalesce(sum(bytes), 0) FROM brook_run WHERE place >= ? AND place < ?"

OLDEST_RUNS = """
    SELECT place, count, sent, body, bytes FROM brook_run WHERE place >= ? AND place < ? ORDER BY place LIMIT ?
"""

# What any group has in flight, or has given up, between two places.
IN_FLIGHT = """
    SELECT place, count FROM brook_claim WHERE place < :end AND place + count > :first
    UNION ALL
    SELECT place, count FROM brook_retry WHERE place < :end AND place + count > :first
    UNION ALL
    SELECT place, 1 FROM brook_dead WHERE place < :end AND place >= :first
"""

DROP_RUN = "DELETE FROM brook_run WHERE place = ?"

DROP_BODY = "DELETE FROM brook_body WHERE id = ?"

# Groups that have come to what was deleted, and no further, go on behind it.
PASS_OVER = "UPDATE brook_progress SET next = :next WHERE topic = :topic AND next >= :offset AND next < :next"

# The first run that is whole and holds a place, or a later one.
NEXT_WHOLE_RUN = """
    SELECT place FROM brook_run
    WHERE place >= coalesce((SELECT max(place) FROM brook_run WHERE place <= :first), :first)
      AND place < :end
      AND place + count > :first
      AND (body = 0 OR EXISTS (SELECT 1 FROM brook_body WHERE id = body))
    ORDER BY place LIMIT 1
"""

# --- settings

SETTINGS = "SELECT name, value FROM brook_setting"

SET_SETTING = "REPLACE INTO brook_setting (name, value) VALUES (?, ?)"

DROP_SETTING = "DELETE FROM brook_setting WHERE name = ?"

# --- watching


def log_claims(count: int) -> str:
    """All that so many receipts hold is over."""
    return f"""
        INSERT INTO brook_delivery
        SELECT c.place, r.id, r.group_id, c.count, c.attempts, r.client, r.thread, r.claimed, ?, 'acked', ''
        FROM brook_receipt r JOIN brook_claim c ON c.receipt = r.id WHERE r.id IN {one_of(count)}
    """


# A part of a claim is over.
LOG_PART = """
    INSERT INTO brook_delivery
    SELECT :place, id, group_id, :count, :attempts, client, thread, claimed, :now, :outcome, :cause
    FROM brook_receipt WHERE id = :receipt
"""

# Of messages between two places alone.
DROP_DELIVERIES = """
    DELETE FROM brook_delivery WHERE place >= :first AND place < :end AND place + count <= :end
"""

# Those that go beyond begin there.
CUT_DELIVERIES = """
    UPDATE brook_delivery SET count = place + count - :end, place = :end WHERE place >= :first AND place < :end
"""

BEAT = "REPLACE INTO brook_client (client, group_id, threads, seen) VALUES (?, ?, ?, ?)"

LEAVE = "DELETE FROM brook_client WHERE client = ?"

ADD_LISTENER = "INSERT INTO brook_listener (client, listener, topic, next, seen) VALUES (?, ?, ?, ?, ?)"

DROP_LISTENERS = "DELETE FROM brook_listener WHERE client = ?"

LISTENER_STATES = """
    SELECT l.client, l.listener, t.name, l.next, e.next, l.seen
    FROM brook_listener l JOIN brook_topic t ON t.id = l.topic JOIN brook_end e ON e.topic = l.topic
    ORDER BY l.client, l.listener, t.name
"""

LAST_ALERT = "SELECT coalesce(max(nth), 0) FROM brook_alert WHERE group_id = ? AND kind = ?"

ADD_ALERT = """
    INSERT INTO brook_alert (group_id, kind, nth, client, thread, text, told) VALUES (?, ?, ?, ?, ?, ?, ?)
"""

DROP_ALERTS = "DELETE FROM brook_alert WHERE group_id = ? AND kind = ? AND nth <= ?"

ALERTS = """
    SELECT a.kind, g.name, a.client, a.thread, a.text, a.told FROM brook_alert a JOIN brook_group g ON g.id = a.group_id
    ORDER BY a.told DESC, a.nth DESC LIMIT ?
"""

ALERT_COUNTS = """
    SELECT g.name, a.kind, max(a.nth) FROM brook_alert a JOIN brook_group g ON g.id = a.group_id
    GROUP BY g.name, a.kind ORDER BY g.name, a.kind
"""

TOPIC_STATES = f"""
    WITH stored AS (
        SELECT place >> {OFFSET_BITS} AS topic, sum(count) AS count, sum(bytes) AS bytes, min(sent) AS oldest,
            max(sent) AS newest, sum(CASE WHEN sent >= ? THEN count ELSE 0 END) AS recent
        FROM brook_run GROUP BY 1
    )
    SELECT t.name, t.rule, e.next, coalesce(s.count, 0), coalesce(s.bytes, 0), s.oldest, s.newest, coalesce(s.recent, 0)
    FROM brook_topic t JOIN brook_end e ON e.topic = t.id LEFT JOIN stored s ON s.topic = t.id ORDER BY t.name
"""

GROUP_STATES = f"""
    WITH claimed AS (
        SELECT r.group_id, c.place >> {OFFSET_BITS} AS topic, sum(c.count) AS count
        FROM brook_receipt r JOIN brook_claim c ON c.receipt = r.id GROUP BY 1, 2
    ), waiting AS (
        SELECT group_id, place >> {OFFSET_BITS} AS topic, sum(count) AS count FROM brook_retry GROUP BY 1, 2
    ), dead AS (
        SELECT group_id, place >> {OFFSET_BITS} AS topic, count(*) AS count FROM brook_dead GROUP BY 1, 2
    )
    SELECT g.name, t.name, p.next, e.next, coalesce(c.count, 0), coalesce(w.count, 0), coalesce(d.count, 0)
    FROM brook_progress p
    JOIN brook_group g ON g.id = p.group_id
    JOIN brook_topic t ON t.id = p.topic
    JOIN brook_end e ON e.topic = p.topic
    LEFT JOIN claimed c ON c.group_id = p.group_id AND c.topic = p.topic
    LEFT JOIN waiting w ON w.group_id = p.group_id AND w.topic = p.topic
    LEFT JOIN dead d ON d.group_id = p.group_id AND d.topic = p.topic
    ORDER BY g.name, t.name
"""

# Who has said that it is there, and who has something in flight.
CLIENT_STATES = """
    WITH named AS (
        SELECT client, group_id FROM brook_client UNION SELECT client, group_id FROM brook_receipt
    ), flying AS (
        SELECT r.client, r.group_id, sum(c.count) AS count, min(r.claimed) AS since
        FROM brook_receipt r JOIN brook_claim c ON c.receipt = r.id GROUP BY 1, 2
    )
    SELECT n.client, g.name, coalesce(c.threads, 0), c.seen, coalesce(f.count, 0), f.since
    FROM named n
    JOIN brook_group g ON g.id = n.group_id
    LEFT JOIN brook_client c ON c.client = n.client AND c.group_id = n.group_id
    LEFT JOIN flying f ON f.client = n.client AND f.group_id = n.group_id
    ORDER BY g.name, n.client
"""

SENDER = """
    SELECT place, sent, sender FROM brook_run
    WHERE place = (SELECT max(place) FROM brook_run WHERE place <= :place) AND place + count > :place
"""

# Every claim of a message, those that are over first.
DELIVERIES = """
    SELECT g.name, d.client, d.thread, d.attempts, d.claimed, d.ended, d.outcome, d.cause
    FROM brook_delivery d JOIN brook_group g ON g.id = d.group_id
    WHERE d.place >= :first AND d.place <= :place AND d.place + d.count > :place
    UNION ALL
    SELECT g.name, r.client, r.thread, c.attempts, r.claimed, NULL, 'in flight', ''
    FROM brook_claim c JOIN brook_receipt r ON r.id = c.receipt JOIN brook_group g ON g.id = r.group_id
    WHERE c.place >= :first AND c.place <= :place AND c.place + c.count > :place
    ORDER BY 5, 4
"""

# What a message is to each group that follows its topic.
STANDINGS = """
    SELECT g.name, CASE
        WHEN :offset >= p.next THEN 'not yet'
        WHEN EXISTS (SELECT 1 FROM brook_claim c JOIN brook_receipt r ON r.id = c.receipt
            WHERE r.group_id = g.id AND c.place <= :place AND c.place + c.count > :place) THEN 'in flight'
        WHEN EXISTS (SELECT 1 FROM brook_retry w
            WHERE w.group_id = g.id AND w.place <= :place AND w.place + w.count > :place) THEN 'waiting'
        WHEN EXISTS (SELECT 1 FROM brook_dead d WHERE d.group_id = g.id AND d.place = :place) THEN 'dead'
        ELSE 'done' END
    FROM brook_progress p JOIN brook_group g ON g.id = p.group_id WHERE p.topic = :topic ORDER BY g.name
"""
