"""The price of an ack as CSV: numbers in the units that the names of columns say, empty where it could not be told."""

import csv
import io
from collections.abc import Sequence

from ackworth.model.result import Latency, PriceRow, Toll
from ackworth.report.price_table import settings

NAME = "price.csv"


def render_csv(rows: Sequence[PriceRow]) -> str:
    records = [_record(row) for row in rows]
    columns = list(dict.fromkeys(name for record in records for name in record))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()


def _record(row: PriceRow) -> dict[str, object]:
    record: dict[str, object] = {"broker": row["broker"], "version": row["version"], "setting": settings(row)}
    record |= _ends("acked_per_second", row["acked_per_second"]) | {"limit": ", ".join(dict.fromkeys(row["limits"]))}
    for what, found in (("ack", row["ack"]), ("delivery", row["delivery"])):
        record |= {f"{what}_{name}_ns": _worst(found, name) for name in ("p50", "p99", "p999")}
    for toll in row["tolls"]:
        record |= {f"{toll['fault'].replace('-', '_')}_{name}": value for name, value in _toll_record(toll).items()}
    return {**record, "verdict": row["verdict"], "claims_source": row["source"]}


def _toll_record(toll: Toll) -> dict[str, object]:
    record: dict[str, object] = {"claimed": toll["claimed"], "verdict": toll["verdict"], "repeats": len(toll["trials"])}
    record |= _ends("acked", toll["acked"]) | _ends("lost", toll["lost"]) | _ends("window_seconds", toll["window"])
    record |= _ends("holes", toll["holes"]) | _ends("duplicates", toll["duplicates"])
    record |= _ends("recovered", toll["recovered"]) | _ends("recovery_seconds", toll["recovery"])
    return {**record, "refused_to_start": len(toll["refused"]), "repaired": "; ".join(dict.fromkeys(toll["repaired"]))}


def _ends(name: str, values: Sequence[float | None]) -> dict[str, object]:
    found = [value for value in values if value is not None]
    return {f"{name}_min": min(found, default=""), f"{name}_max": max(found, default="")}


def _worst(found: Sequence[Latency], name: str) -> object:
    """Of the repeats; empty if one of them never came back."""
    values: list[float | None] = [latency[name] for latency in found]  # type: ignore[literal-required]
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else ""
