"""Our driver of NATS JetStream against nats-py, the vendor's client for Python; see bench/clients.py.

    .venv/bin/python bench/nats_jetstream.py [--messages 200000] [--rounds 5] [--window 1000] [--size 128]

nats-py publishes the same bytes again and again, and takes the acks as they come.
"""

import asyncio
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

import nats
from clients import TOPIC, Cost, Load, compare, measured

from ackworth.broker.nats_jetstream import BROKER
from ackworth.driver.contract import Address

AS_PEER = "--as-nats-py"


def nats_py(address: Address, load: Load, folder: Path) -> Cost:
    command = [sys.executable, __file__, AS_PEER, json.dumps([address, asdict(load)])]
    return measured(load, command, milliseconds=r"([\d.]+) ms")


async def publish(address: Address, load: Load) -> None:
    client = await nats.connect(f"nats://{address['host']}:{address['port']}")
    jetstream = client.jetstream(publish_async_max_pending=load.window)
    body, subject = b"x" * load.size, f"{address['stream']}.{TOPIC}"
    began = time.monotonic()
    for _ in range(load.messages):
        await jetstream.publish_async(subject, body)
    await jetstream.publish_async_completed()
    print(f"{(time.monotonic() - began) * 1000:.3f} ms")
    await client.close()


if __name__ == "__main__":
    if sys.argv[1:2] == [AS_PEER]:
        address, load = json.loads(sys.argv[2])
        asyncio.run(publish(address, Load(**load)))
    else:
        compare(BROKER, {}, "nats-py", nats_py, __doc__)
