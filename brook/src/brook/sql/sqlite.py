"""All SQL for SQLite: the migrations, and the statements by name.

A message's *place* is `topic << 44 | offset`, so that a topic is one contiguous range of a B-tree:
524,287 topics of 17 million million messages each. Bodies are apart from the runs, in the order of
commits: a batch over many topics then writes its bodies side by side instead of into as many corners
of the file as there are topics, which is several times fewer pages.
"""

OFFSET_BITS = 44

# Labels are kept by blocks of so many places. All that one commit adds then goes into a few pages, however many
# keys there are, where one order over the whole topic would be a page for each key; looking one up is a seek for
# each block instead of one seek.
BLOCK_BITS = 12

# The migration to version n is item n - 1. A released one is never edited: append another.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE brook_schema (version INTEGER NOT NULL)",
        "INSERT INTO brook_schema VALUES (0)",
        """CREATE TABLE brook_topic (
            id INTEGER PRIMARY KEY CHECK (id < 1 << 19),
            name TEXT NOT NULL UNIQUE,
            next INTEGER NOT NULL DEFAULT 0 CHECK (next <= 1 << 44)
        )""",
        """CREATE TABLE brook_run (
            place INTEGER PRIMARY KEY, -- of its first message
            count INTEGER NOT NULL,
            sent INTEGER NOT NULL, -- milliseconds of the wall clock
            body INTEGER NOT NULL
        )""",
        """CREATE TABLE brook_body (
            id INTEGER PRIMARY KEY,
            data BLOB NOT NULL, -- the bodies, back to back
            sizes BLOB, -- of each body, little-endian uint32; NULL if all are alike
            extras TEXT -- JSON, [key, tags, properties] or null for each message
        )""",
        """CREATE TABLE brook_group (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            follows_all INTEGER NOT NULL -- 1: also the topics that are yet to come
        )""",
        """CREATE TABLE brook_progress (
            group_id INTEGER NOT NULL,
            topic INTEGER NOT NULL,
            next INTEGER NOT NULL, -- every offset below has been claimed
            PRIMARY KEY (group_id, topic)
        ) WITHOUT ROWID""",
        # AUTOINCREMENT, because an id that came back would let a late ack take another client's claim.
        """CREATE TABLE brook_receipt (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            group_id INTEGER NOT NULL,
            client TEXT NOT NULL,
            expires REAL NOT NULL -- seconds of the wall clock
        )""",
        """CREATE TABLE brook_claim (
            receipt INTEGER NOT NULL,
            place INTEGER NOT NULL,
            count INTEGER NOT NULL,
            attempts INTEGER NOT NULL,
            PRIMARY KEY (receipt, place)
        ) WITHOUT ROWID""",
    ),
    (
        # 1: of a topic one batch at a time, and a retried message holds up those of its key.
        "ALTER TABLE brook_group ADD COLUMN ordered INTEGER NOT NULL DEFAULT 0",
        # JSON array: messages with none of these tags are passed over; empty: all are wanted.
        "ALTER TABLE brook_group ADD COLUMN tags TEXT NOT NULL DEFAULT '[]'",
        """CREATE TABLE brook_retry (
            group_id INTEGER NOT NULL,
            place INTEGER NOT NULL,
            count INTEGER NOT NULL,
            attempts INTEGER NOT NULL, -- so far
            due REAL NOT NULL, -- seconds of the wall clock
            cause TEXT NOT NULL,
            key TEXT, -- of the message, in an ordered group
            PRIMARY KEY (group_id, place)
        ) WITHOUT ROWID""",
        "CREATE INDEX brook_retry_due ON brook_retry (group_id, due)",
        """CREATE TABLE brook_dead (
            group_id INTEGER NOT NULL,
            place INTEGER NOT NULL,
            attempts INTEGER NOT NULL,
            died REAL NOT NULL, -- seconds of the wall clock
            cause TEXT NOT NULL,
            PRIMARY KEY (group_id, place)
        ) WITHOUT ROWID""",
    ),
    (
        "ALTER TABLE brook_topic ADD COLUMN rule TEXT NOT NULL DEFAULT 'read-write'",
        "ALTER TABLE brook_run ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0",
        "UPDATE brook_run SET bytes = coalesce((SELECT length(data) FROM brook_body WHERE id = body), 0)",
        # Kept apart, so that the id of a body that somebody deleted is not used again.
        "ALTER TABLE brook_schema ADD COLUMN last_body INTEGER NOT NULL DEFAULT 0",
        "UPDATE brook_schema SET last_body = (SELECT coalesce(max(id), 0) FROM brook_body)",
        "CREATE TABLE brook_setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    ),
    (
        # JSON, [host/pid, thread] or [host/pid, thread of each message]
        "ALTER TABLE brook_run ADD COLUMN sender TEXT",
        "ALTER TABLE brook_receipt ADD COLUMN thread TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE brook_receipt ADD COLUMN claimed REAL NOT NULL DEFAULT 0",
        # Claims that are over.
        """CREATE TABLE brook_delivery (
            place INTEGER NOT NULL,
            receipt INTEGER NOT NULL,
            group_id INTEGER NOT NULL,
            count INTEGER NOT NULL,
            attempts INTEGER NOT NULL,
            client TEXT NOT NULL,
            thread TEXT NOT NULL,
            claimed REAL NOT NULL,
            ended REAL NOT NULL,
            outcome TEXT NOT NULL, -- acked, refused, dead or lost
            cause TEXT NOT NULL,
            PRIMARY KEY (place, receipt)
        ) WITHOUT ROWID""",
        # Consumers, which tell now and then that they are there.
        """CREATE TABLE brook_client (
            client TEXT NOT NULL,
            group_id INTEGER NOT NULL,
            threads INTEGER NOT NULL,
            seen REAL NOT NULL,
            PRIMARY KEY (client, group_id)
        ) WITHOUT ROWID""",
    ),
    (
        # Which runs hold a key or a tag.
        """CREATE TABLE brook_label (
            block INTEGER NOT NULL, -- place >> BLOCK_BITS
            label TEXT NOT NULL,
            place INTEGER NOT NULL, -- of the run
            PRIMARY KEY (block, label, place)
        ) WITHOUT ROWID""",
        """INSERT OR IGNORE INTO brook_label
            SELECT r.place >> 12, label.value, r.place
            FROM brook_run r JOIN brook_body b ON b.id = r.body
            JOIN json_tree(b.extras) label
            WHERE label.type = 'text' AND label.fullkey NOT LIKE '$[%][2].%'""",
    ),
)

# --- schema

# Is this a database of ours already?
HAS_SCHEMA = "SELECT count(*) FROM sqlite_schema WHERE name = 'brook_schema'"

SCHEMA_VERSION = "SELECT version FROM brook_schema"

SET_SCHEMA_VERSION = "UPDATE brook_schema SET version = ?"

# --- topics

ALL_TOPICS = "SELECT name, id FROM brook_topic"

ADD_TOPIC = "INSERT INTO brook_topic (name) VALUES (?) ON CONFLICT DO NOTHING"

RULES = "SELECT id, rule FROM brook_topic"

SET_RULE = "UPDATE brook_topic SET rule = ?2 WHERE id = ?1"

UNREADABLE = "SELECT id FROM brook_topic WHERE rule IN ('write-only', 'closed')"

# Groups that follow everything get the topics that they do not have yet, from the start.
FOLLOW_NEW_TOPICS = """
    INSERT INTO brook_progress (group_id, topic, next)
    SELECT g.id, t.id, 0 FROM brook_group g, brook_topic t WHERE g.follows_all
    ON CONFLICT DO NOTHING
"""

# --- sending

# Changes nothing, and takes the write lock.
TAKE_WRITE_LOCK = "UPDATE brook_schema SET version = version WHERE 0"

# The last body's id, as that of topic 0, and next offset and rule of the topics whose ids are in a JSON array.
NEXT_OFFSETS = """
    SELECT 0, last_body, 'read-write' FROM brook_schema
    UNION ALL
    SELECT id, next, rule FROM brook_topic WHERE id IN (SELECT value FROM json_each(?))
"""

MOVE_LAST_BODY = "UPDATE brook_schema SET last_body = ?"

ADD_BODY = "INSERT INTO brook_body (id, data, sizes, extras) VALUES (?, ?, ?, ?)"

ADD_RUN = "INSERT INTO brook_run (place, count, sent, body, bytes, sender) VALUES (?, ?, ?, ?, ?, ?)"

MOVE_NEXT_OFFSET = "UPDATE brook_topic SET next = ?2 WHERE id = ?1"

# --- groups

GROUP = "SELECT id, ordered, tags FROM brook_group WHERE name = ?"

# A group that follows everything goes on doing so; NULL leaves an option as it is.
ADD_GROUP = """
    INSERT INTO brook_group (name, follows_all, ordered, tags)
    VALUES (:name, :follows_all, coalesce(:ordered, 0), coalesce(:tags, '[]'))
    ON CONFLICT (name) DO UPDATE SET
        follows_all = max(follows_all, excluded.follows_all),
        ordered = coalesce(:ordered, ordered),
        tags = coalesce(:tags, tags)
    RETURNING id
"""

FOLLOW = "INSERT INTO brook_progress (group_id, topic, next) VALUES (?, ?, ?)"

FOLLOWED = "SELECT topic FROM brook_progress WHERE group_id = ?"

# Messages of the group's topics that are not done: not claimed yet, claimed, and waiting for a retry.
LAG = """
    SELECT
        (SELECT coalesce(sum(t.next - p.next), 0)
         FROM brook_progress p JOIN brook_topic t ON t.id = p.topic WHERE p.group_id = :group_id)
        +
        (SELECT coalesce(sum(c.count), 0)
         FROM brook_receipt r JOIN brook_claim c ON c.receipt = r.id WHERE r.group_id = :group_id)
        +
        (SELECT coalesce(sum(count), 0) FROM brook_retry WHERE group_id = :group_id)
"""

# --- positions

TOPIC_END = "SELECT next FROM brook_topic WHERE id = ?"

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

# --- reading without a claim

# Runs from one place to before another, in the form of CLAIMED_RUNS.
RUNS_BETWEEN = """
    SELECT :first, :end - :first, 0, r.place, r.count, r.sent, b.data, b.sizes, b.extras
    FROM brook_run r JOIN brook_body b ON b.id = r.body
    WHERE r.place >= coalesce((SELECT max(place) FROM brook_run WHERE place <= :first), :first)
      AND r.place < :end
      AND r.place + r.count > :first
    ORDER BY r.place LIMIT :runs
"""

# Where the run begins that holds a place.
RUN_AT = "SELECT coalesce(max(place), ?1) FROM brook_run WHERE place <= ?1"

ADD_LABEL = "INSERT OR IGNORE INTO brook_label VALUES (?, ?, ?)"

# The runs of a block that hold a label and reach beyond a place, in the form of CLAIMED_RUNS.
LABELLED_RUNS = """
    SELECT :first, :end - :first, 0, r.place, r.count, r.sent, b.data, b.sizes, b.extras
    FROM brook_label l JOIN brook_run r ON r.place = l.place JOIN brook_body b ON b.id = r.body
    WHERE l.block = :block AND l.label = :label AND l.place < :end AND r.place + r.count > :first
    ORDER BY l.place LIMIT :runs
"""

# Of the blocks from one to another that have no runs any more.
DROP_LABELS = f"""
    DELETE FROM brook_label WHERE block >= ? AND block <= ? AND NOT EXISTS (
        SELECT 1 FROM brook_run WHERE place >= block << {BLOCK_BITS} AND place < (block + 1) << {BLOCK_BITS}
    )
"""

# --- claiming

# The topics of the group that have messages which nobody has claimed.
READY = """
    SELECT p.topic, p.next, t.next - p.next FROM brook_progress p JOIN brook_topic t ON t.id = p.topic
    WHERE p.group_id = ? AND t.next > p.next
"""

# The claims that are out, by owner.
RECEIPTS = "SELECT id, client, expires FROM brook_receipt WHERE group_id = ?"

ADD_RECEIPT = """
    INSERT INTO brook_receipt (group_id, client, thread, claimed, expires) VALUES (?, ?, ?, ?, ?) RETURNING id
"""

CLAIMS = "SELECT place, count, attempts FROM brook_claim WHERE receipt = ? ORDER BY place"

ADD_CLAIM = "INSERT INTO brook_claim (receipt, place, count, attempts) VALUES (?, ?, ?, ?)"

DROP_CLAIM = "DELETE FROM brook_claim WHERE receipt = ? AND place = ?"

MOVE_PROGRESS = "UPDATE brook_progress SET next = ?3 WHERE group_id = ?1 AND topic = ?2"

DROP_EMPTY_RECEIPT = """
    DELETE FROM brook_receipt
    WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM brook_claim WHERE receipt = ?1)
"""

# The runs that a receipt's claims touch. The one that a claim begins in may begin before it.
CLAIMED_RUNS = """
    SELECT c.place, c.count, c.attempts, r.place, r.count, r.sent, b.data, b.sizes, b.extras
    FROM brook_claim c
    JOIN brook_run r
      ON r.place >= coalesce((SELECT max(place) FROM brook_run WHERE place <= c.place), c.place)
     AND r.place < c.place + c.count
     AND r.place + r.count > c.place
    JOIN brook_body b ON b.id = r.body
    WHERE c.receipt = ?
    ORDER BY c.place, r.place
"""

# --- retries and dead letters

ADD_RETRY = """
    INSERT INTO brook_retry (group_id, place, count, attempts, due, cause, key) VALUES (?, ?, ?, ?, ?, ?, ?)
"""

NEXT_DUE = "SELECT min(due) FROM brook_retry WHERE group_id = ?"

# In the order of places, which keeps the order of a key; topics is a JSON array or NULL for all.
DUE = f"""
    SELECT place, count, attempts, due, cause, key FROM brook_retry
    WHERE group_id = :group_id AND due <= :now
      AND (:topics IS NULL OR place >> {OFFSET_BITS} IN (SELECT value FROM json_each(:topics)))
      AND place >> {OFFSET_BITS} NOT IN (SELECT value FROM json_each(:taken))
    ORDER BY place LIMIT :limit
"""

DROP_RETRY = "DELETE FROM brook_retry WHERE group_id = ? AND place = ?"

# The keys that wait in an ordered group, by the place of the first message that waits.
WAITING_KEYS = """
    SELECT place, key, due FROM brook_retry
    WHERE group_id = (SELECT group_id FROM brook_receipt WHERE id = ?) AND key IS NOT NULL ORDER BY place DESC
"""

ADD_DEAD = """
    INSERT INTO brook_dead (group_id, place, attempts, died, cause) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET attempts = excluded.attempts, died = excluded.died, cause = excluded.cause
"""

DEAD = """
    SELECT d.place, d.attempts, d.died, d.cause
    FROM brook_dead d WHERE d.group_id = ? AND d.place >= ? ORDER BY d.place LIMIT ?
"""

DROP_DEAD = "DELETE FROM brook_dead WHERE group_id = ? AND place = ?"

# --- after claiming

DROP_CLAIMS = "DELETE FROM brook_claim WHERE receipt = ? RETURNING count"

DROP_RECEIPT = "DELETE FROM brook_receipt WHERE id = ?"

RECEIPT_GROUP = "SELECT group_id FROM brook_receipt WHERE id = ?"

RENEW = "UPDATE brook_receipt SET expires = ?2 WHERE id = ?1"

CLAIMED_COUNT = "SELECT coalesce(sum(count), 0) FROM brook_claim WHERE receipt = ?"

EXPIRE_ALL_OF = "UPDATE brook_receipt SET expires = 0 WHERE client = ?"

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

# Groups that are not there yet go on behind what was deleted.
PASS_OVER = "UPDATE brook_progress SET next = ?2 WHERE topic = ?1 AND next < ?2"

# The first run that is whole and holds a place, or a later one.
NEXT_WHOLE_RUN = """
    SELECT place FROM brook_run
    WHERE place >= coalesce((SELECT max(place) FROM brook_run WHERE place <= :first), :first)
      AND place < :end
      AND place + count > :first
      AND EXISTS (SELECT 1 FROM brook_body WHERE id = body)
    ORDER BY place LIMIT 1
"""

# --- settings

SETTINGS = "SELECT name, value FROM brook_setting"

SET_SETTING = "INSERT INTO brook_setting VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"

DROP_SETTING = "DELETE FROM brook_setting WHERE name = ?"

# --- watching

# Changes whenever another connection has committed something.
DATA_VERSION = "PRAGMA data_version"

# The whole claim is over.
LOG_CLAIM = """
    INSERT INTO brook_delivery
    SELECT c.place, r.id, r.group_id, c.count, c.attempts, r.client, r.thread, r.claimed, ?2, 'acked', ''
    FROM brook_receipt r JOIN brook_claim c ON c.receipt = r.id WHERE r.id = ?1
"""

# A part of a claim is over.
LOG_PART = """
    INSERT INTO brook_delivery
    SELECT :place, id, group_id, :count, :attempts, client, thread, claimed, :now, :outcome, :cause
    FROM brook_receipt WHERE id = :receipt
"""

DROP_DELIVERIES = "DELETE FROM brook_delivery WHERE place >= ? AND place < ?"

BEAT = """
    INSERT INTO brook_client VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET threads = excluded.threads, seen = excluded.seen
"""

LEAVE = "DELETE FROM brook_client WHERE client = ?"

TOPIC_STATES = f"""
    SELECT t.name, t.rule, t.next, coalesce(sum(r.count), 0), coalesce(sum(r.bytes), 0), min(r.sent), max(r.sent),
        coalesce(sum(CASE WHEN r.sent >= ? THEN r.count END), 0)
    FROM brook_topic t LEFT JOIN brook_run r
        ON r.place >= t.id << {OFFSET_BITS} AND r.place < (t.id + 1) << {OFFSET_BITS}
    GROUP BY t.id ORDER BY t.name
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
    SELECT g.name, t.name, p.next, t.next, coalesce(c.count, 0), coalesce(w.count, 0), coalesce(d.count, 0)
    FROM brook_progress p
    JOIN brook_group g ON g.id = p.group_id
    JOIN brook_topic t ON t.id = p.topic
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
