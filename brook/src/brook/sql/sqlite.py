"""What SQL is particular to SQLite: the migrations, and a few statements.

What a commit costs is the pages that it changes, each of which is written to the log as a whole.

- Bodies are apart from the runs, in the order of commits: a batch over many topics then writes its bodies side by
  side instead of into as many corners of the file as there are topics, which is several times fewer pages.
- A small run that is committed alone is one row in one page: the bodies are with it, and nothing counts it.
"""

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
        # Which runs hold a key or a tag; of a long one, how it begins.
        """CREATE TABLE brook_label (
            block INTEGER NOT NULL, -- place >> BLOCK_BITS
            label TEXT NOT NULL,
            place INTEGER NOT NULL, -- of the run
            PRIMARY KEY (block, label, place)
        ) WITHOUT ROWID""",
        """INSERT OR IGNORE INTO brook_label
            SELECT r.place >> 12, substr(label.value, 1, 255), r.place
            FROM brook_run r JOIN brook_body b ON b.id = r.body
            JOIN json_tree(b.extras) label
            WHERE label.type = 'text' AND label.fullkey NOT LIKE '$[%][2].%'""",
    ),
    (
        # A small run that is committed alone has its bodies with it, and `body` is 0.
        "ALTER TABLE brook_run ADD COLUMN data BLOB",
        "ALTER TABLE brook_run ADD COLUMN sizes BLOB",
        "ALTER TABLE brook_run ADD COLUMN extras TEXT",
        # A topic ends where its last run does: a send need not write to the topic. Its `next` is where those runs ended
        # that were deleted, by whomever.
        """CREATE VIEW brook_end AS
            SELECT id AS topic, max(next, coalesce((
                SELECT place + count - (id << 44) FROM brook_run
                WHERE place >= id << 44 AND place < (id + 1) << 44 ORDER BY place DESC LIMIT 1
            ), 0)) AS next
            FROM brook_topic""",
        """CREATE TRIGGER brook_run_deleted AFTER DELETE ON brook_run BEGIN
            UPDATE brook_topic SET next = old.place + old.count - (id << 44)
            WHERE id = old.place >> 44 AND next < old.place + old.count - (id << 44);
        END""",
    ),
    (
        # How far listeners are, which they tell now and then.
        """CREATE TABLE brook_listener (
            client TEXT NOT NULL,
            listener INTEGER NOT NULL, -- of those of the client
            topic INTEGER NOT NULL,
            next INTEGER NOT NULL,
            seen REAL NOT NULL,
            PRIMARY KEY (client, listener, topic)
        ) WITHOUT ROWID""",
        # The last alerts of each group and kind.
        """CREATE TABLE brook_alert (
            group_id INTEGER NOT NULL,
            kind TEXT NOT NULL, -- slow, timeout, dead or lost
            nth INTEGER NOT NULL, -- from 1 on, and never again: the last tells how many there were
            client TEXT NOT NULL,
            thread TEXT NOT NULL,
            text TEXT NOT NULL,
            told REAL NOT NULL, -- seconds of the wall clock
            PRIMARY KEY (group_id, kind, nth)
        ) WITHOUT ROWID""",
    ),
)

# Is this a database of ours already?
HAS_SCHEMA = "SELECT count(*) FROM sqlite_schema WHERE name = 'brook_schema'"

# The view before what it looks at.
TABLES = """
    SELECT type, name FROM sqlite_schema
    WHERE type IN ('table', 'view') AND substr(name, 1, 6) = 'brook_' ORDER BY 1 DESC
"""

# Changes nothing, and takes the write lock.
TAKE_WRITE_LOCK = "UPDATE brook_schema SET version = version WHERE 0"

LAST_BODY = "SELECT last_body FROM brook_schema"

MOVE_LAST_BODY = "UPDATE brook_schema SET last_body = ?"

# Changes whenever another connection has committed something.
DATA_VERSION = "PRAGMA data_version"
