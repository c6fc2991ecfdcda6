"""Figures of the server in Prometheus' text format.

Knows jobs as they end, and what the dispatcher does now. Invariant: counters count tokens and requests, never anything
of their text.
"""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from editor_engine.server.dispatcher import Dispatcher, Job, Status

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)


class Metrics:
    """Counters of one server, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()

        def counter(name: str, words: str, labels: tuple[str, ...] = ()) -> Counter:
            return Counter(name, words, labels, registry=self._registry)

        def seconds(name: str, words: str) -> Histogram:
            return Histogram(name, words, buckets=_SECONDS, registry=self._registry)

        self._requests = counter("redraft_requests", "Completions by how they ended.", ("outcome",))
        self._prompt = counter("redraft_prompt_tokens", "Tokens of prompts, cached ones among them.")
        self._cached = counter("redraft_cached_tokens", "Prompt tokens that were in the cache already.")
        self._output = counter("redraft_output_tokens", "Tokens of replies.")
        self._drafted = counter("redraft_drafted_tokens", "Tokens drafted and verified.")
        self._accepted = counter("redraft_accepted_tokens", "Drafted tokens that were the model's own choice.")
        self._passes = counter("redraft_passes", "Passes of the model after the prefill.")
        self._waited = seconds("redraft_queue_seconds", "From the request's arrival to its start.")
        self._ran = seconds("redraft_run_seconds", "From the request's start to its end.")
        self._ttft = seconds("redraft_first_token_seconds", "From the request's start to its first token.")

    def watch(self, dispatcher: Dispatcher) -> None:
        """Show what this dispatcher does, too."""
        self._registry.register(_Now(dispatcher))

    def ended(self, job: Job, now: float) -> None:
        """Count a job that has left queue or engine."""
        self._requests.labels(job.outcome).inc()
        if job.started_at is None:
            return
        self._waited.observe(job.started_at - job.queued_at)
        self._ran.observe(now - job.started_at)
        if job.finished is None:
            return
        stats = job.finished.stats
        for total, count in (
            (self._prompt, stats.prompt_tokens),
            (self._cached, stats.cached_tokens),
            (self._output, stats.output_tokens),
            (self._drafted, stats.drafted),
            (self._accepted, stats.accepted),
            (self._passes, stats.passes),
        ):
            total.inc(count or 0)
        if stats.ttft_s is not None:
            self._ttft.observe(stats.ttft_s)

    def text(self) -> bytes:
        """The page."""
        return generate_latest(self._registry)


class _Now:
    """A collector of what is so at this moment."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def collect(self) -> Iterator[Metric]:
        """One gauge a fact."""
        waiting = GaugeMetricFamily("redraft_requests_waiting", "Completions in the queue.")
        waiting.add_metric([], self._dispatcher.waiting)
        yield waiting
        states = GaugeMetricFamily("redraft_state", "1 for what the server is doing.", labels=["state"])
        for state in Status:
            states.add_metric([state.value], float(self._dispatcher.status is state))
        yield states
