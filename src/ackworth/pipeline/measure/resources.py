"""Resources: what each process and node used, from the samples."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ackworth.model.result import Resource
from ackworth.pipeline.context import Context
from ackworth.pipeline.ids import Int64s
from ackworth.pipeline.measurement import TOTAL, Findings, Key, Measurement
from ackworth.pipeline.rows import Rows

_COLUMNS = ("t", "cpu", "rss", "read", "written", "busy")


class Resources(Measurement):
    name = "resources"
    columns = {"sample": ("who", *_COLUMNS)}  # noqa: RUF012

    def __init__(self, context: Context, knows: None) -> None:
        super().__init__(context, knows)
        self._samples: defaultdict[str, list[Int64s]] = defaultdict(list)

    def fold(self, table: str, rows: Rows) -> None:
        samples = np.stack([rows[column] for column in _COLUMNS])
        who = rows["who"]
        for name in dict.fromkeys(who.tolist()):
            self._samples[name].append(samples[:, who == name])

    def partials(self) -> Iterable[tuple[Key, Any]]:
        yield TOTAL, dict(self._samples)

    @classmethod
    def reduce(cls, context: Context, knows: None, key: Key, partials: list[Any]) -> dict[str, Int64s]:
        merged: defaultdict[str, list[Int64s]] = defaultdict(list)
        for partial in partials:
            for who, samples in partial.items():
                merged[who] += samples
        return {who: np.concatenate(samples, axis=1) for who, samples in merged.items()}

    @classmethod
    def conclude(cls, context: Context, found: Mapping[Key, Any], findings: Findings) -> None:
        for who, samples in sorted(found.get(TOTAL, {}).items()):
            in_time = samples[:, np.argsort(samples[0], kind="stable")]
            findings.result["resources"].append(_resource(context, who, in_time))


def _resource(context: Context, who: str, samples: Int64s) -> Resource:
    t, cpu, rss, read, written, busy = samples
    spans = np.maximum(np.diff(t), 1)
    cores = _used(cpu) / spans
    return {
        "who": who,
        "cpu_cores": float(_used(cpu).sum() / spans.sum()) if len(spans) else 0.0,
        "cpu_cores_max": float(cores.max(initial=0)),
        "rss_max": int(rss.max()),
        "read": int(_used(read).sum()),
        "written": int(_used(written).sum()),
        "t": [context.seconds(end) for end in t[1:].tolist()],
        "cpu": cores.tolist(),
        "rss": rss[1:].tolist(),
        "busy": (_used(busy) / spans).tolist(),
    }


def _used(counter: Int64s) -> Int64s:
    """What a counter grew by from sample to sample; one that fell was started anew."""
    grown = np.diff(counter)
    return np.where(grown < 0, counter[1:], grown)
