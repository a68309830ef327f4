"""What SQL is particular to MariaDB and MySQL: the migrations, and a few statements.

The id of a body is the place of its run. Names compare byte by byte.
"""

from collections.abc import Collection

from brook.sql.statements import among, one_of

_TABLE = "ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE {collation}"

# Of those that compare byte by byte and do not ignore spaces at the end, each server knows one.
MARIADB_COLLATION, MYSQL_COLLATION = "utf8mb4_nopad_bin", "utf8mb4_0900_bin"

# The migration to version n is item n - 1. A released one is never edited: append another. The server commits after
# each statement, and others may be at it too: each must do no harm when it comes twice.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        f"""CREATE TABLE IF NOT EXISTS brook_schema (
            id INT PRIMARY KEY, -- 1: there is one row
            version INT NOT NULL,
            queue CHAR(36) NOT NULL, -- tells this queue from all others
            turn BIGINT NOT NULL DEFAULT 0 -- counted up to have the lock of the catalogue
        ) {_TABLE}""",
        "INSERT IGNORE INTO brook_schema (id, version, queue) VALUES (1, 0, UUID())",
        f"""CREATE TABLE IF NOT EXISTS brook_topic (
            id INT AUTO_INCREMENT PRIMARY KEY,
            name VARCHAR(255) NOT NULL UNIQUE,
            next BIGINT NOT NULL DEFAULT 0,
            rule VARCHAR(10) NOT NULL DEFAULT 'read-write'
        ) {_TABLE}""",
        f"""CREATE TABLE IF NOT EXISTS brook_run (
            place BIGINT PRIMARY KEY, -- of its first message
            count INT NOT NULL,
            sent BIGINT NOT NULL, -- milliseconds of the wall clock
            body BIGINT NOT NULL,
            bytes BIGINT NOT NULL,
            sender LONGTEXT, -- JSON, [host/pid, thread] or [host/pid, thread of each message]
            data LONGBLOB, -- of a small run that is committed alone, the bodies are with it, and body is 0
            sizes LONGBLOB,
            extras LONGTEXT
        ) {_TABLE}""",
        # SQLite has no such column of the topic.
        "CREATE OR REPLACE SQL SECURITY INVOKER VIEW brook_end AS SELECT id AS topic, next FROM brook_topic",
        f"""CREATE TABLE IF NOT EXISTS brook_body (
            id BIGINT PRIMARY KEY,
            data LONGBLOB NOT NULL, -- the bodies, back to back
            sizes LONGBLOB, -- of each body, little-endian uint32; NULL if all are alike
            extras LONGTEXT -- JSON, [key, tags, properties] or null for each message
        ) {_TABLE}""",
        # What callers' transactions have sent; it is yet to get its offsets.
        f"""CREATE TABLE IF NOT EXISTS brook_inbox (
            id BIGINT AUTO_INCREMENT PRIMARY KEY,
            topic INT NOT NULL,
            count INT NOT NULL,
            sent BIGINT NOT NULL,
            data LONGBLOB NOT NULL,
            sizes LONGBLOB,
            extras LONGTEXT,
            sender LONGTEXT,
            KEY (topic)
        ) {_TABLE}""",
        f"""CREATE TABLE IF NOT EXISTS brook_group (
            id INT AUTO_INCREMENT PRIMARY KEY,
            name VARCHAR(255) NOT NULL UNIQUE,
            follows_all INT NOT NULL, -- 1: also the topics that are yet to come
            ordered INT NOT NULL, -- 1: of a topic one batch at a time, and a retried message holds up those of its key
            tags LONGTEXT NOT NULL, -- JSON array: messages with none of these are passed over; empty: all are wanted
            turn BIGINT NOT NULL DEFAULT 0 -- counted up to have the lock of the group
        ) {_TABLE}""",
        f"""CREATE TABLE IF NOT EXISTS brook_progress (
            group_id INT NOT NULL,
            topic INT NOT NULL,
            next BIGINT NOT NULL, -- every offset below has been claimed
            PRIMARY KEY (group_id, topic)
        ) {_TABLE}""",
        f"""CREATE TABLE IF NOT EXISTS brook_receipt (
            id BIGINT AUTO_INCREMENT PRIMARY KEY,
            group_id INT NOT NULL,
            client VARCHAR(700) NOT NULL,
            thread LONGTEXT NOT NULL,
            claimed DOUBLE NOT NULL, -- seconds of the wall clock, as are all DOUBLEs here
            expires DOUBLE NOT NULL,
            KEY (group_id)
        ) {_TABLE}""",
        f"""CREATE TABLE IF NOT EXISTS brook_claim (
            receipt BIGINT NOT NULL,
            place BIGINT NOT NULL,
            count INT NOT NULL,
            attempts INT NOT NULL,
            PRIMARY KEY (receipt, place)
        ) {_TABLE}""",
        f"""CREATE TABLE IF NOT EXISTS brook_retry (
            group_id INT NOT NULL,
            place BIGINT NOT NULL,
            count INT NOT NULL,
            attempts INT NOT NULL, -- so far
            due DOUBLE NOT NULL,
            cause LONGTEXT NOT NULL,
            `key` LONGTEXT, -- of the message, in an ordered group
            PRIMARY KEY (group_id, place),
            KEY (group_id, due)
        ) {_TABLE}""",
        f"""CREATE TABLE IF NOT EXISTS brook_dead (
            group_id INT NOT NULL,
            place BIGINT NOT NULL,
            attempts INT NOT NULL,
            died DOUBLE NOT NULL,
            cause LONGTEXT NOT NULL,
            PRIMARY KEY (group_id, place)
        ) {_TABLE}""",
        f"CREATE TABLE IF NOT EXISTS brook_setting (name VARCHAR(255) PRIMARY KEY, value LONGTEXT NOT NULL) {_TABLE}",
        # Claims that are over.
        f"""CREATE TABLE IF NOT EXISTS brook_delivery (
            place BIGINT NOT NULL,
            receipt BIGINT NOT NULL,
            group_id INT NOT NULL,
            count INT NOT NULL,
            attempts INT NOT NULL,
            client VARCHAR(700) NOT NULL,
            thread LONGTEXT NOT NULL,
            claimed DOUBLE NOT NULL,
            ended DOUBLE NOT NULL,
            outcome VARCHAR(10) NOT NULL, -- acked, refused, dead or lost
            cause LONGTEXT NOT NULL,
            PRIMARY KEY (place, receipt)
        ) {_TABLE}""",
        # Which runs hold a key or a tag; of a long one, how it begins.
        f"""CREATE TABLE IF NOT EXISTS brook_label (
            block BIGINT NOT NULL, -- place >> BLOCK_BITS
            label VARCHAR(255) NOT NULL,
            place BIGINT NOT NULL, -- of the run
            PRIMARY KEY (block, label, place)
        ) {_TABLE}""",
        # Consumers, which tell now and then that they are there.
        f"""CREATE TABLE IF NOT EXISTS brook_client (
            client VARCHAR(700) NOT NULL,
            group_id INT NOT NULL,
            threads INT NOT NULL,
            seen DOUBLE NOT NULL,
            PRIMARY KEY (client, group_id)
        ) {_TABLE}""",
    ),
    (
        # How far listeners are, which they tell now and then.
        f"""CREATE TABLE IF NOT EXISTS brook_listener (
            client VARCHAR(700) NOT NULL,
            listener INT NOT NULL, -- of those of the client
            topic INT NOT NULL,
            next BIGINT NOT NULL,
            seen DOUBLE NOT NULL,
            PRIMARY KEY (client, listener, topic)
        ) {_TABLE}""",
        # The last alerts of each group and kind.
        f"""CREATE TABLE IF NOT EXISTS brook_alert (
            group_id INT NOT NULL,
            kind VARCHAR(10) NOT NULL, -- slow, timeout, dead or lost
            nth BIGINT NOT NULL, -- from 1 on, and never again: the last tells how many there were
            client VARCHAR(700) NOT NULL,
            thread LONGTEXT NOT NULL,
            text LONGTEXT NOT NULL,
            told DOUBLE NOT NULL,
            PRIMARY KEY (group_id, kind, nth)
        ) {_TABLE}""",
    ),
)

HAS_SCHEMA = "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'brook_schema'"

# The view before what it looks at.
TABLES = """
    SELECT if(table_type = 'VIEW', 'VIEW', 'TABLE'), table_name FROM information_schema.tables
    WHERE table_schema = DATABASE() AND left(table_name, 6) = 'brook_' ORDER BY 1 DESC
"""

# Never back, if a newer Brook is at it too.
REACHED = "UPDATE brook_schema SET version = greatest(version, ?)"

QUEUE = "SELECT queue FROM brook_schema"

# --- the session

ISOLATION = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"

MANNERS = "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = ?"

# Of a server that is part of a cluster: let a select wait for what the others have committed.
IS_CLUSTERED = "SHOW VARIABLES WHERE Variable_name = 'wsrep_on' AND Value = 'ON'"

WAIT_FOR_OTHERS = "SET SESSION wsrep_sync_wait = 1"

SERVER = """
    SELECT version(), @@max_allowed_packet, @@innodb_flush_log_at_trx_commit, @@log_bin = 0 OR @@sync_binlog = 1
"""

# --- locks that are a change too: the nodes of a cluster see a conflict in what two of them have changed alone

LOCK_CATALOGUE = "UPDATE brook_schema SET turn = turn + 1"

LOCK_GROUP = "UPDATE brook_group SET turn = turn + 1 WHERE name = ?"

# --- claims

# Of a small table the server would rather look at all rows, and would wait for those that others have locked.
BY_KEY = "FORCE INDEX (PRIMARY)"

# From the id of a row to that of the next, of those that one statement adds; the server tells the first.
STEP = "SELECT @@auto_increment_increment"


def drop_receipts(count: int) -> str:
    """So many, with what they hold."""
    return f"""
        DELETE r, c FROM brook_receipt r {BY_KEY} LEFT JOIN brook_claim c ON c.receipt = r.id
        WHERE r.id IN {one_of(count)}
    """


# --- places that are taken without a look: the next, or those that Redis proposes

# The server tells the first with its answer, and LAST_INSERT_ID() tells the next statement.
TAKE_PLACES = """
    UPDATE brook_topic SET next = LAST_INSERT_ID(next) + :count
    WHERE id = :topic AND next = coalesce(:first, next) AND rule IN ('read-write', 'write-only')
      AND NOT EXISTS (SELECT 1 FROM brook_inbox WHERE topic = :topic)
"""

# Of a topic that begins at a place; if the statement before, which took the places, found it as it should be.
ADD_SMALL_RUN = """
    INSERT INTO brook_run (place, count, sent, body, bytes, sender, data, sizes)
    SELECT :begin + LAST_INSERT_ID(), :count, :sent, 0, :bytes, :sender, :data, :sizes FROM DUAL WHERE ROW_COUNT() = 1
"""

# --- the inbox

ADD_TO_INBOX = """
    INSERT INTO brook_inbox (topic, count, sent, data, sizes, extras, sender) VALUES (?, ?, ?, ?, ?, ?, ?)
"""

WAITING = "SELECT topic FROM brook_inbox ORDER BY id LIMIT ?"


def lock_offsets(topics: Collection[int]) -> str:
    """Next offset and rule of the topics, and whether there is something for them in the inbox; that is not locked."""
    return f"""
        SELECT id, next, rule, EXISTS (SELECT 1 FROM brook_inbox WHERE topic = brook_topic.id)
        FROM brook_topic WHERE id IN {among(topics)} ORDER BY id FOR UPDATE
    """


def inbox_of(topics: Collection[int]) -> str:
    return f"""
        SELECT id, topic, count, sent, length(data), sender, extras FROM brook_inbox
        WHERE topic IN {among(topics)} ORDER BY id LIMIT ?
    """


ADMIT_BODY = """
    INSERT INTO brook_body (id, data, sizes, extras) SELECT ?, data, sizes, extras FROM brook_inbox WHERE id = ?
"""

DROP_FROM_INBOX = "DELETE FROM brook_inbox WHERE id = ?"
