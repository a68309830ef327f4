"""What a reader of a how-to page does next, in a tree that has what the page adds.

python follow.py driver BROKER FOLDER         put the broker's driver through `check_driver`
python follow.py trial PLAN FOLDER [SET ...]  run the plan's one trial and print its result as JSON
"""

import json
import sys
from pathlib import Path

from ackworth.broker import registry
from ackworth.cli.progress import Progress
from ackworth.driver.contract import load
from ackworth.pipeline.trial import judge_trial
from ackworth.plan import resolve
from ackworth.run.conductor import Conductor
from ackworth.testing import drivers
from ackworth.testing.engine import Inline
from ackworth.testing.nodes import fresh_addresses


def driver(kind: str, folder: str) -> None:
    broker = registry.find(kind)
    with fresh_addresses(broker, Path(folder)) as fresh:
        drivers.check_driver(load(broker.driver), fresh)


def trial(plan: str, folder: str, *sets: str) -> None:
    [one] = resolve.trials(resolve.find(plan), "small", sets)
    Conductor(one, Path(folder), "00000000000000aa", 1, Progress(quiet=True)).run()
    print(json.dumps(judge_trial(folder, Inline())))


if __name__ == "__main__":
    if sys.argv[1] == "driver":
        driver(*sys.argv[2:])
    else:
        trial(*sys.argv[2:])
