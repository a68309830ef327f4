"""Runs one trial: broker, load, faults, drain. It writes the record and judges nothing.

    prepare   the nodes get their places, on disks of their own if their power will be cut
    load      phase by phase; faults strike when they are due, nodes are mended, workers replaced
    drain     consumers read until nothing has come for a while
    end       workers, nodes, scribe and disks are gone, the record is whole, `end.json` says how it went

Whatever goes wrong on the way becomes a problem in `end.json`, and the verdict unknown.
"""

import contextlib
import dataclasses
import itertools
import math
import os
import random
import time
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from ackworth.broker import registry
from ackworth.broker.contract import Node
from ackworth.driver import contract as drivers
from ackworth.fault import contract as faults
from ackworth.fault.schedule import Progress, Schedule
from ackworth.history.meta import End, Group, Trial
from ackworth.history.schema import DELIVERED, OUTCOME, SENT
from ackworth.load.worker import Order
from ackworth.model.clock import SECOND
from ackworth.model.errors import AckworthError, BrokerFailed, NotReady
from ackworth.model.interrupts import interrupts_wait
from ackworth.plan.model import CONSUMER, FaultPlan, Phase
from ackworth.plan.reader import RateOf
from ackworth.plan.resolve import TrialPlan
from ackworth.run import samples, space
from ackworth.run.attached import Attached, Attachment
from ackworth.run.crew import Crew, Worker, shares
from ackworth.run.logbook import Logbook
from ackworth.run.scribe import ScribeProcess
from ackworth.run.stage import Stage
from ackworth.run.watch import WATCHED, Watch

TICK = 0.02
READY_WITHIN = 60.0
RECOVERED_WITHIN = 180.0  # a server that reads all of its log again after a fault may take its time


class Reporter(Protocol):
    """Who is told how far a trial is."""

    def counts(self, phase: str, *, sent: int, answered: int, delivered: int) -> None:
        """About once a second."""
        ...

    def happened(self, what: str) -> None:
        """Something that a reader will want to see later."""
        ...

    def working(self, what: str) -> None:
        """Something that takes a while."""
        ...


class Conductor:
    def __init__(
        self,
        trial: TrialPlan,
        directory: Path,
        run: str,
        seed: int,
        reporter: Reporter,
        attachment: Attachment | None = None,
    ) -> None:
        self._name, self._plan, self._directory = trial.name, trial.plan, directory.resolve()
        self._case, self._cell, self._repeat = trial.case, trial.cell, trial.repeat
        self._run, self._seed, self._reporter = run, seed, reporter
        self._broker = registry.find(trial.plan.broker.kind)
        self._settings = registry.settle(self._broker, trial.plan.broker.settings)
        self._driver = drivers.load(self._broker.driver)
        self._faults = {fault.kind: faults.find(fault.kind) for fault in trial.plan.faults}
        self._schedule = Schedule(trial.plan.faults, trial.plan.workload, seed)
        self._chance = random.Random(f"{seed}/nodes")
        # A user's own broker has other topics and groups too, and not every broker takes every character.
        own = f"ackworth-{run}-{zlib.crc32(trial.name.encode()):08x}"
        prefix = f"{own}-" if attachment else ""
        self._topics = [f"{prefix}topic-{i:03d}" for i in range(trial.plan.workload.topics)]
        self._groups = [f"{prefix}group-{i}" for i in range(trial.plan.workload.groups)]
        self._log = Logbook(self._directory)
        self._watch = Watch(self._log.spool)
        self._notes: list[str] = []
        self._attachment = attachment
        self._stage = (
            Attached(attachment, attachment.address(self._settings, own), self._topics, self._groups, self._notes)
            if attachment
            else Stage(
                self._directory, self._broker, self._settings, trial.plan.broker.topology, list(self._faults.values())
            )
        )
        self._sampled_at = 0.0
        self._load_began = 0.0
        self._acked: list[tuple[float, int]] = [(0.0, 0)]

    # ---- the whole ---------------------------------------------------------------------------------

    def run(self) -> End:
        """The trial from beginning to end. What goes wrong becomes a problem of its End.

        Interrupted it stops at the next tick, or after its end: nothing is started, mended or cleaned up by halves.
        """
        with interrupts_wait() as self._interrupts:
            return self._conduct()

    def _conduct(self) -> End:
        self._log.begin(self._trial())
        problems: list[str] = []
        drained = False
        try:
            with contextlib.ExitStack() as stack:
                self._set_up(stack)
                self._load()
                drained = self._drain()
        except KeyboardInterrupt:
            problems.append("it was interrupted")
            raise
        except (AckworthError, OSError) as error:
            problems.append(str(error))
        except Exception as error:
            problems.append(f"Ackworth itself failed ({type(error).__name__})")
            raise
        finally:
            end = self._end(drained, problems)
        return end

    def _trial(self) -> Trial:
        plan, broker = self._plan, self._plan.broker
        return Trial(
            run=self._run,
            name=self._name,
            plan=dataclasses.asdict(plan),
            topics=tuple(self._topics),
            groups=tuple(
                Group(name=name, topics=None if plan.workload.reads is None else topics)
                for name, topics in zip(self._groups, plan.workload.topics_read, strict=True)
            ),
            producers=plan.workload.producers,
            consumers=len(plan.workload.consumer_groups),
            reasons=self._driver.REASONS,
            claims=self._broker.claims(self._settings, broker.topology),
            seed=self._seed,
            t_zero=time.monotonic_ns(),
            wall_zero=datetime.now(UTC).isoformat(),
            cores=os.cpu_count() or 0,
            case=self._case,
            cell=self._cell,
            repeat=self._repeat,
            broker={
                "kind": broker.kind,
                "version": self._attachment.version if self._attachment else self._broker.version(),
                "attached": self._attachment.shown if self._attachment else None,
                "embedded": self._broker.embedded,
                "topology": broker.topology,
                "settings": self._settings,
                "disk": "ext4 on a loop device" if self._stage.own_disks else "as the run's directory",
            },
        )

    def _end(self, drained: bool, problems: list[str]) -> End:
        if not problems:  # a trial that failed has a better reason
            problems += [
                f"the fault '{fault.kind}' did not strike as often as planned" for fault in self._schedule.outstanding()
            ]
        try:
            self._watch.look()
        except AckworthError as error:
            problems.append(str(error))
        end = End(
            t=time.monotonic_ns(),
            drained=drained,
            problems=tuple(problems),
            notes=tuple(self._notes),
            rows={table.name: self._watch.rows(table) for table in WATCHED},
        )
        try:
            self._log.end(end, self._reporter.working)
        except (AckworthError, OSError) as error:
            self._reporter.happened(str(error))
        return end

    # ---- prepare -----------------------------------------------------------------------------------

    def _set_up(self, stack: contextlib.ExitStack) -> None:
        stack.enter_context(self._stage)
        self._scribe = stack.enter_context(ScribeProcess(self._directory))
        self._crew = Crew(self._log.logs, self._order(self._stage.address))
        stack.callback(self._crew.kill)
        self._await_broker(READY_WITHIN, "prepare")
        self._stage.sync()

    def _await_broker(self, seconds: float, phase: str | None = None) -> None:
        """Until it answers, has its topics, and all nodes take part; the load, if there is any, goes on meanwhile."""
        deadline = time.monotonic() + seconds
        self._crew.prepare(seconds, lambda: self._tick(phase))
        while not self._stage.joined():
            self._tick(phase)
            if time.monotonic() > deadline:
                raise NotReady(f"not every node takes part {seconds:g} s after its start: see its log")

    def _order(self, address: dict[str, Any]) -> Order:
        workload = self._plan.workload
        return Order(
            role="",
            parent=0,
            driver=self._broker.driver,
            address=address,
            topics=self._topics,
            groups=self._groups,
            sends=[list(topics) for topics in workload.topics_sent],
            reads=[list(topics) for topics in workload.topics_read],
            run=self._run,
            seed=self._seed,
            spool=str(self._log.spool),
            sizes=list(workload.body.sizes),
            weights=None if workload.body.weights is None else list(workload.body.weights),
            window=workload.window,
            batch=workload.batch,
            broadcast=workload.broadcast,
            refuse=workload.refuse,
        )

    # ---- load --------------------------------------------------------------------------------------

    def _load(self) -> None:
        if self._plan.workload.consume == "during":
            self._start_consumers()
        for phase in self._plan.workload.phases:
            with self._log.phase(phase.name, warm_up=phase.warm_up):
                if not self._run_phase(phase):
                    return

    def _run_phase(self, phase: Phase) -> bool:
        """False if a fault ended the load."""
        self._phase = phase
        self._quotas = self._share_out(phase)
        self._start_producers()
        self._phase_began = time.monotonic_ns()
        self._crew.go(self._phase_began)
        self._load_began = self._load_began or time.monotonic()
        self._well_at = time.monotonic()
        while True:
            self._tick()
            self._require_well("produce", "the producers could not send")
            if fault := self._schedule.due(self._progress()):
                self._strike(fault)
                if not fault.resume:
                    self._crew.finish("produce", self._tick)
                    return False
                self._start_producers()
                self._crew.go(self._phase_began)
                self._well_at = time.monotonic()
            elif self._phase_is_over():
                self._crew.finish("produce", self._tick)
                return True

    def _share_out(self, phase: Phase) -> dict[int, tuple[int, int]]:
        """(first seq, one past the last) of each producer."""
        quotas, left = {}, phase.messages or 0
        weights = [len(topics) for topics in self._plan.workload.topics_sent]
        for producer, weight in enumerate(weights):
            first = self._next_seq(producer)
            share = -(-left * weight // sum(weights[producer:]))  # rounded up: the last get what is left
            quotas[producer] = (first, first + ((1 << 60) if phase.messages is None else share))
            left -= share
        return quotas

    def _next_seq(self, producer: int) -> int:
        return self._watch.rows(SENT, f"p{producer:05d}")

    def _start_producers(self) -> None:
        """Start workers for the producers that have something to send and no worker."""
        busy = {entry[0] for worker in self._crew.role("produce") for entry in worker.order.producers or ()}
        self._watch.look()
        entries = [
            [producer, base, self._next_seq(producer), last]
            for producer, (base, last) in self._quotas.items()
            if producer not in busy and self._next_seq(producer) < last
        ]
        assert not isinstance(self._phase.rate, RateOf), "run.rates makes numbers of them"
        rate = self._phase.rate and self._phase.rate / self._plan.workload.producers
        self._crew.produce(entries, rate)

    def _start_consumers(self) -> None:
        busy = {entry[0] for worker in self._crew.role("consume") for entry in worker.order.consumers or ()}
        entries = [[i, group] for i, group in enumerate(self._plan.workload.consumer_groups) if i not in busy]
        self._crew.consume(shares(entries) if self._plan.workload.clients is None else self._clients(entries))

    def _clients(self, entries: list[list[int]]) -> list[list[list[int]]]:
        """The consumers by the process that the plan puts them in."""
        clients = self._plan.workload.clients or ()
        process = [number for number, groups in enumerate(clients) for _ in groups]
        return [list(client) for _, client in itertools.groupby(entries, key=lambda entry: process[entry[0]])]

    def _phase_is_over(self) -> bool:
        if (
            self._phase.duration is not None
            and time.monotonic_ns() - self._phase_began >= self._phase.duration * SECOND
        ):
            return True
        return not any(worker.running for worker in self._crew.role("produce"))

    def _progress(self) -> Progress:
        seconds = time.monotonic() - self._load_began
        answered = self._watch.rows(OUTCOME)
        self._acked = [*(pair for pair in self._acked if pair[0] > seconds - 1.5), (seconds, answered)]
        (began, before) = self._acked[0]
        span = seconds - began
        return Progress(
            seconds=seconds,
            sent=self._watch.rows(SENT),
            acked_per_second=(answered - before) / span if span >= 1 else 0.0,
        )

    # ---- faults ------------------------------------------------------------------------------------

    def _strike(self, plan: FaultPlan) -> None:
        nodes = self._targets(plan.node)
        at_stake = self._at_stake(plan, nodes)
        begin = time.monotonic_ns()
        self._reporter.happened(plan.kind)
        mend = self._stage.strike(self._faults[plan.kind], nodes)
        down = time.monotonic_ns()
        of = "consumer" if plan.node == CONSUMER else "node"
        for node in nodes:
            self._log.mark(
                "fault", plan.kind, node.name, begin, down, of=of, whole=len(nodes) == len(self._stage.nodes)
            )
        dead = [worker for worker in at_stake if not worker.running]
        for worker in dead:
            self._log.mark("worker-died", worker.name, "", begin, down)
            self._crew.forget(worker)
        if not plan.resume and self._faults[plan.kind].ends_node:
            self._crew.ask_to_end("produce")
        self._pass(begin + int(plan.down * SECOND))
        mended = time.monotonic_ns()
        mend()
        if plan.node == CONSUMER:
            self._await_broker(READY_WITHIN)
        else:
            self._bring_back(plan.kind, nodes)
        ready = time.monotonic_ns()
        for node in nodes:
            self._log.mark("ready", plan.kind, node.name, mended, ready)
        if any(worker.order.role == "consume" for worker in dead):
            self._start_consumers()

    def _targets(self, name: str) -> Sequence[Node]:
        if name != CONSUMER:
            return self._stage.choose(name, self._chance)
        return [self._chance.choice(self._crew.role("consume"))]

    def _at_stake(self, plan: FaultPlan, nodes: Sequence[Node]) -> list[Worker]:
        """The workers that the fault may end: one that it strikes itself, or all that have the broker inside."""
        if not self._faults[plan.kind].ends_node:
            return []
        inside = self._broker.embedded and plan.node != CONSUMER
        return [worker for worker in self._crew.workers if worker.running and (inside or worker in nodes)]

    def _bring_back(self, kind: str, nodes: Sequence[Node]) -> None:
        """Until they answer their protocol again; what refuses to start is repaired, where there is a tool for it.

        A server that refuses ends; files that nobody can open have no other way to say so.
        """
        seconds = READY_WITHIN if self._broker.embedded else RECOVERED_WITHIN
        try:
            self._await_broker(seconds)
        except BrokerFailed as refusal:
            if isinstance(refusal, NotReady) and not self._broker.embedded:
                raise
            for other in self._stage.nodes.values():
                if other not in nodes:
                    other.look()  # one that was not struck, and ended by itself, is no refusal of those that were
            began = time.monotonic_ns()
            for node in nodes:
                self._log.mark("refused", kind, node.name, began, began, reason=str(refusal))
            self._reporter.happened(f"refused to start after {kind}")
            said = self._stage.repair(nodes)
            if said is None:
                raise
            for node in nodes:
                self._log.mark("repaired", kind, node.name, began, time.monotonic_ns(), said=said)
            self._await_broker(seconds)

    def _pass(self, until: int) -> None:
        while time.monotonic_ns() < until:
            self._tick()

    # ---- drain -------------------------------------------------------------------------------------

    def _drain(self) -> bool:
        """Read until nothing has come for a while; False if that took too long."""
        drain = self._plan.workload.drain
        deadline = time.monotonic() + drain.limit
        with self._log.phase("drain"):
            self._start_consumers()
            self._crew.ask_anew("consume")
            self._well_at = time.monotonic()
            seen, since = -1, math.inf  # since when it is quiet: not yet
            while time.monotonic() - since < drain.quiet or not self._crew.heard_after(since, "consume"):
                self._tick("drain")
                rows = self._watch.rows(DELIVERED)
                is_quiet = rows == seen and self._consumers_are_idle()
                seen, since = rows, min(since, time.monotonic()) if is_quiet else math.inf
                if time.monotonic() > deadline:
                    self._notes.append(f"the drain was given up after {drain.limit:g} s, while messages still came")
                    return False
            self._crew.finish("consume", lambda: self._tick("drain"))
        return True

    def _consumers_are_idle(self) -> bool:
        """Whether all have asked and got nothing: only then does silence mean something. Raises if one cannot ask."""
        self._require_well("consume", "the consumers could not read")
        return all(worker.idle for worker in self._crew.role("consume"))

    # ---- all the time ------------------------------------------------------------------------------

    def _tick(self, phase: str | None = None) -> None:
        time.sleep(TICK)
        if self._interrupts:
            raise KeyboardInterrupt
        self._watch.look()
        self._crew.look()
        self._scribe.look()
        self._stage.look()
        if time.monotonic() - self._sampled_at >= 1:
            self._sampled_at = time.monotonic()
            space.check_during(self._directory)
            self._sample(phase or self._phase.name)

    def _require_well(self, role: str, otherwise: str) -> None:
        """Raises BrokerFailed if some of these workers have been in trouble with the broker for long."""
        workers = [worker for worker in self._crew.role(role) if worker.running]
        troubles = [worker.trouble for worker in workers if worker.trouble is not None]
        if not troubles:
            self._well_at = time.monotonic()
        elif time.monotonic() - self._well_at > READY_WITHIN:
            raise BrokerFailed(f"{otherwise} for {READY_WITHIN:g} s: {troubles[0]}")

    def _sample(self, phase: str) -> None:
        sent, acked, delivered = (self._watch.rows(table) for table in WATCHED)
        pids = {f"worker:{w.name}": w.process.pid for w in self._crew.workers if w.running}
        pids["scribe"] = self._scribe.pid
        if not self._broker.embedded:
            pids |= {f"node:{n.name}": pid for n in self._stage.nodes.values() for pid in n.processes()[:1]}
        backlog = acked - int(delivered / (self._plan.workload.copies or 1))
        self._log.sample(samples.rows(pids, self._stage.device, max(0, backlog)))
        self._reporter.counts(phase, sent=sent, answered=acked, delivered=delivered)
