"""A consumer: receives, checks every byte, records, and only then acknowledges."""

from collections.abc import Callable

import numpy as np

from ackworth.driver.contract import Answered, ConnectionLost, Incoming, Receiver
from ackworth.history.spool import Spool
from ackworth.load.body import Bodies
from ackworth.load.producer import NEVER, RECONNECT_EVERY
from ackworth.model.clock import Clock
from ackworth.model.outcome import Delivery

_INT16_MAX = 0x7FFF


class Consumer:
    def __init__(
        self,
        *,
        consumer: int,
        group: int,
        connect: Callable[[], Receiver],
        delivered: Spool,
        bodies: Bodies,
        batch: int,
        clock: Clock,
    ) -> None:
        self._consumer, self._group, self._connect = consumer, group, connect
        self._delivered, self._bodies, self._batch, self._clock = delivered, bodies, batch, clock
        self._receiver: Receiver | None = None
        self._connect_at = 0
        self.trouble: str | None = "not connected yet"  # why it cannot read; None if it can
        self.idle = False  # it asked, and there was nothing

    def step(self, wait: float) -> bool:
        """Take what has come, waiting at most so many seconds; False if nothing came."""
        try:
            if self._receiver is None:
                if self._clock.now() < self._connect_at:
                    return False
                self._connect_at = self._clock.now() + RECONNECT_EVERY
                self._receiver = self._connect()
            incoming = self._receiver.receive(self._batch, wait)
            self.trouble = None
            self.idle = incoming is None and (not isinstance(self._receiver, Answered) or self._receiver.told_empty)
            if incoming is None:
                return False
            self._record(incoming)
            self._receiver.acknowledge(incoming)
        except ConnectionLost as lost:
            self.trouble, self.idle = str(lost), False
            self.close()
            return False
        return True

    @property
    def connection(self) -> Receiver | None:
        return self._receiver

    def next_at(self) -> int:
        """When there will be something to do; if only a message can tell, never."""
        return self._connect_at if self._receiver is None else NEVER

    def _record(self, incoming: Incoming) -> None:
        now = self._clock.now()
        checked = self._bodies.check(incoming.bodies, incoming.lengths)
        # What is no number of ours must not wrap around into one.
        producer = np.where(checked.producer > _INT16_MAX, -1, checked.producer)
        flags = (
            checked.intact * np.int8(Delivery.INTACT)
            | incoming.redelivered * np.int8(Delivery.REDELIVERED)
            | checked.foreign * np.int8(Delivery.FOREIGN)
            | (checked.intact & (checked.topic != incoming.topics)) * np.int8(Delivery.MISDELIVERED)
        )
        self._delivered.append(
            len(incoming),
            consumer=self._consumer,
            group=self._group,
            producer=producer,
            topic=incoming.topics,
            seq=checked.seq,
            t=now,
            latency=np.where(checked.intact, now - checked.t_sent, 0),
            flags=flags,
            position=incoming.positions,
        )

    def close(self) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.close()
