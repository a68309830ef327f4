"""What a reader of a how-to page does next, in a tree that has what the page adds.

python follow.py driver BROKER FOLDER         put the broker's driver through `check_driver`
python follow.py trial PLAN FOLDER [SET ...]  run the plan's one trial and print its result as JSON
"""

import contextlib
import itertools
import json
import sys
from pathlib import Path

from ackworth.broker import registry
from ackworth.broker.contract import Place
from ackworth.broker.process import wait_until
from ackworth.cli.progress import Progress
from ackworth.driver.contract import Address, ConnectionLost, load
from ackworth.pipeline.trial import judge_trial
from ackworth.plan import resolve
from ackworth.run.conductor import Conductor
from ackworth.testing import drivers
from ackworth.testing.engine import Inline


def driver(kind: str, folder: str) -> None:
    broker = registry.find(kind)
    found = load(broker.driver)
    drivers.PATIENCE = 2.0
    with contextlib.ExitStack() as stack:
        numbers = itertools.count()

        def fresh() -> Address:
            place = Place(data=Path(folder) / str(next(numbers)), logs=Path(folder) / "logs" / str(next(numbers)))
            place.data.mkdir(parents=True)
            place.logs.mkdir(parents=True)
            settings = registry.settle(broker, {})
            [name] = broker.nodes("single")
            node = broker.node(name, place, settings)
            stack.callback(node.stop)
            node.start()
            address = broker.address({name: place}, settings)
            wait_until(lambda: answers(address), 10, f"{kind} answers")
            return address

        def answers(address: Address) -> bool:
            try:
                found.prepare(address, [], [])
            except ConnectionLost:
                return False
            return True

        drivers.check_driver(found, fresh)


def trial(plan: str, folder: str, *sets: str) -> None:
    [one] = resolve.trials(resolve.find(plan), "small", sets)
    Conductor(one, Path(folder), "00000000000000aa", 1, Progress(quiet=True)).run()
    print(json.dumps(judge_trial(folder, Inline())))


if __name__ == "__main__":
    if sys.argv[1] == "driver":
        driver(*sys.argv[2:])
    else:
        trial(*sys.argv[2:])
