"""Judging a record: Ackworth on Spark beside DuckDB, from the same files, in one run.

    python bench/judge.py --messages 1e6 1e7 1e8 --dir /tmp/judge-bench

Records are synthetic, with planted truth; both answers are checked against it. DuckDB makes the account in
its best form (64-bit words of ids, grouped), the histograms of both latencies per second, the throughput
per second, the lost ids and the order; it need not classify duplicates, place losses or find recovery times.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ackworth.testing.synthetic import Planted, write_synthetic


def main() -> None:
    options = _options()
    if options.ackworth:
        print(json.dumps(_ackworth(options.ackworth, options.master)))
    elif options.duckdb:
        print(json.dumps(_duckdb(options.duckdb)))
    else:
        _compare([int(float(m)) for m in options.messages], options.dir, options.keep, options.master)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", nargs="+", default=["1e6", "1e7"], help="sizes of the records")
    parser.add_argument("--dir", type=Path, default=Path("/tmp/judge-bench"), help="where records are kept")
    parser.add_argument("--keep", action="store_true", help="leave the records for the next time")
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--ackworth", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--duckdb", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _compare(sizes: list[int], directory: Path, keep: bool, master: str) -> None:
    columns = "messages", "events", "start s", "cold s", "warm s", "DuckDB s (without order)", "cold x", "warm x"
    print(f"| {' | '.join([*columns, 'M events/s', 'peak MiB'])} |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for messages in sizes:
        planted = Planted(messages)
        record = directory / str(messages)
        if not (record / "end.json").exists():
            write_synthetic(record, planted)
        ours = _in_a_process("--ackworth", record, master)
        theirs = _in_a_process("--duckdb", record, master)
        _check(planted, ours["found"], theirs["found"])
        warm = min(ours["warm"])
        print(
            f"| {messages:,} | {ours['events']:,} | {ours['start']:.1f} | {ours['cold']:.1f} | {warm:.1f} "
            f"| {theirs['seconds']:.1f} ({theirs['without_order']:.1f}) | {theirs['seconds'] / ours['cold']:.1f} "
            f"| {theirs['seconds'] / warm:.1f} | {ours['events'] / warm / 1e6:.1f} "
            f"| {ours['peak'] >> 20:,} (DuckDB {theirs['peak'] >> 20:,}) |",
            flush=True,
        )
        if not keep:
            shutil.rmtree(record)
    if not keep:
        shutil.rmtree(directory)


def _in_a_process(what: str, record: Path, master: str) -> dict[str, Any]:
    command = [sys.executable, __file__, what, str(record), "--master", master]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _check(planted: Planted, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    truth = {**planted.account, **planted.group}
    for name, value in ours.items():
        assert value == truth[name], f"Ackworth: {name} is {value}, planted {truth[name]}"
    # DuckDB does not count deliveries of other runs, and counts steps back instead of late messages: see the queries.
    truth |= {"extra": truth["duplicates"]["extra"], "phantom": truth["phantom"] - truth["foreign"]}
    for name, value in theirs.items():
        assert value == truth[name], f"DuckDB: {name} is {value}, planted {truth[name]}"


def _ackworth(record: Path, master: str) -> dict[str, Any]:
    from ackworth.pipeline.session import session
    from ackworth.pipeline.trial import judge_trial

    _read_once(record)
    begin = time.monotonic()
    with _Peak() as peak, session(master) as spark:
        spark.spark.range(1).collect()  # the session is there when it has done something
        start = time.monotonic() - begin
        results = [judge_trial(record, spark) for _ in range(4)]
    found = {**results[0]["account"], **results[0]["groups"][0]}
    del found["reasons"]
    times = [result["judging"]["seconds"] for result in results]
    return {
        "start": start,
        "cold": times[0],
        "warm": times[1:],
        "events": results[0]["judging"]["events"],
        "found": found,
        "peak": peak.bytes,
    }


def _read_once(record: Path) -> None:
    """So that neither side waits for the disk."""
    for path in record.rglob("*.parquet"):
        path.read_bytes()


def _duckdb(record: Path) -> dict[str, Any]:
    import duckdb

    base = duckdb.connect()
    for table in ("sent", "outcome", "delivered"):
        base.execute(f"CREATE VIEW {table} AS FROM read_parquet('{record}/record/{table}/*.parquet')")
    with _Peak() as peak:
        begin = time.monotonic()
        base.execute(WORDS)
        row = base.execute(ACCOUNT).fetchone()
        names = [column[0] for column in base.description]
        base.execute(LOST).fetchall()
        for query in (PER_SECOND, ACK_LATENCY, DELIVERY_LATENCY):
            base.execute(query).fetchall()
        without_order = time.monotonic() - begin
        base.execute(INVERSIONS).fetchone()
        seconds = time.monotonic() - begin
    return {
        "seconds": seconds,
        "without_order": without_order,
        "found": dict(zip(names, map(int, row), strict=True)),
        "peak": peak.bytes,
    }


WORDS = """
CREATE TEMP TABLE words AS
WITH s AS (SELECT producer, seq >> 6 AS word, bit_or(1::UBIGINT << (seq & 63)) AS sent FROM sent GROUP BY ALL),
o AS (
    SELECT producer, seq >> 6 AS word,
        bit_or(CASE outcome WHEN 1 THEN 1::UBIGINT << (seq & 63) ELSE 0::UBIGINT END) AS acked,
        bit_or(CASE outcome WHEN 2 THEN 1::UBIGINT << (seq & 63) ELSE 0::UBIGINT END) AS refused,
        bit_or(CASE outcome WHEN 3 THEN 1::UBIGINT << (seq & 63) ELSE 0::UBIGINT END) AS unsure
    FROM outcome GROUP BY ALL
),
d AS (
    SELECT producer, seq >> 6 AS word, bit_or(1::UBIGINT << (seq & 63)) AS got, count(*) AS came
    FROM delivered WHERE flags & 5 = 1 GROUP BY ALL
)
SELECT producer, word, came, coalesce(sent, 0::UBIGINT) AS sent, coalesce(acked, 0::UBIGINT) AS acked,
    coalesce(refused, 0::UBIGINT) AS refused, coalesce(unsure, 0::UBIGINT) AS unsure,
    coalesce(got, 0::UBIGINT) AS got
FROM s LEFT JOIN o USING (producer, word) FULL JOIN d USING (producer, word)
"""
ACCOUNT = """
SELECT sum(bit_count(sent)) AS sent, sum(bit_count(acked)) AS acked, sum(bit_count(refused)) AS refused,
    sum(bit_count(unsure)) AS unknown, sum(bit_count(acked & ~got)) AS lost,
    sum(bit_count(refused & got)) AS resurrected, sum(bit_count(got & sent)) AS distinct,
    sum(bit_count(sent & ~acked & ~refused & got)) AS recovered,
    sum(bit_count(got & ~sent)) AS phantom, sum(CASE sent WHEN 0 THEN 0 ELSE came - bit_count(got) END) AS extra
FROM words
"""
LOST = "SELECT producer, word, acked & ~got FROM words WHERE acked & ~got != 0"
PER_SECOND = """
SELECT 0, t // 1000000000, count(*) FROM sent GROUP BY ALL
UNION ALL SELECT 1, t // 1000000000, count(*) FROM outcome WHERE outcome = 1 GROUP BY ALL
UNION ALL SELECT 2, t // 1000000000, count(*) FROM delivered GROUP BY ALL
"""
ACK_LATENCY = """
SELECT t // 1000000000, (log2(latency) * 128)::INT, count(*), max(latency), sum(latency)
FROM outcome WHERE outcome = 1 GROUP BY ALL
"""
DELIVERY_LATENCY = """
SELECT t // 1000000000, (log2(latency) * 128)::INT, count(*), max(latency), sum(latency)
FROM delivered WHERE flags & 5 = 1 GROUP BY ALL
"""
INVERSIONS = """
SELECT count(*) FROM (
    SELECT seq < lag(seq) OVER (PARTITION BY consumer, producer, topic ORDER BY t) AS back
    FROM delivered WHERE flags & 5 = 1
) WHERE back
"""


class _Peak:
    """The most memory that this process and all below it had at a time, shared pages counted once."""

    def __enter__(self) -> "_Peak":
        self.bytes = 0
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._over.wait(0.25):
            self.bytes = max(self.bytes, sum(map(_proportional, _family(os.getpid()))))


def _family(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            parents[int(entry.name)] = _read(entry / "stat", lambda text: int(text.rpartition(")")[2].split()[1]), 0)
    family = [root]
    for pid in family:
        family += [child for child, parent in parents.items() if parent == pid]
    return family


def _proportional(pid: int) -> int:
    path = Path(f"/proc/{pid}/smaps_rollup")
    return _read(path, lambda text: 1024 * int(text.partition("\nPss:")[2].split()[0]), 0)


def _read(path: Path, parse: Callable[[str], int], otherwise: int) -> int:
    try:
        return parse(path.read_text())
    except (OSError, IndexError, ValueError):
        return otherwise


if __name__ == "__main__":
    main()
