"""The engine: load a model once, complete requests one after the other, keep the KV cache between them.

One request: render -> tokenise -> reuse the cached prefix -> prefill -> [draft -> verify -> rewind]* -> detokenise.
The loop itself is `editor_engine.decode.speculate`. Knows nothing of files, diffs or terminals.

Invariant: `Finished.token_ids` depends on the request and the model file only, not on drafting, threads, what was
asked before, or where an earlier request was cancelled.
"""

import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

from editor_engine.config import EngineConfig
from editor_engine.decode.draft_pair import DraftPair
from editor_engine.decode.drafting import DrafterFactory, Drafting, figures
from editor_engine.decode.meter import Meter
from editor_engine.decode.plain import PLAIN_ORIGIN, plain
from editor_engine.decode.prefill import prefill
from editor_engine.decode.prefix_cache import PrefixCache
from editor_engine.decode.reply import Reply, source_line
from editor_engine.decode.speculate import PassRecord, speculate
from editor_engine.decode.stopping import RepetitionGuard, ReplyEnd
from editor_engine.draft.drafter import Draft
from editor_engine.errors import CancelledError, ContextOverflowError, RequestError
from editor_engine.events import EngineEvent, Finished, Pass, Started
from editor_engine.loading import load, load_pair, refuse_or_note
from editor_engine.models.target import ModelInfo, TargetModel
from editor_engine.request_tokens import TokenisedRequest, tokenise
from editor_engine.requests import CancelFlag, CompletionRequest
from editor_engine.text.detokeniser import Detokeniser
from editor_engine.text.tokenizer import Tokenizer


class Engine:
    """One loaded model and its cache. Not for two requests at once: the second one is refused."""

    def __init__(
        self,
        model: TargetModel,
        tokenizer: Tokenizer,
        template: str,
        *,
        notes: tuple[str, ...] = (),
        cache_folder: Path | None = None,
        prefix_bytes: int = 0,
        pair: DraftPair | None = None,
        draft_rule: str = "same-ids",
        make_drafter: DrafterFactory | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`cache_folder` is the model file's own: what passes cost is kept there. `prefix_bytes` may be taken for the
        prompts of other conversations. `pair`: a draft model, last in the chain; `draft_rule`: see `EngineConfig`.
        `make_drafter` is for tests."""
        self.notes = notes
        """What happened at load that a user should know."""
        self.choice: str | None = None
        """Why this model, in a sentence of whoever chose it; None where the user named one."""
        self._model = model
        self._tokenizer = tokenizer
        self._template = template
        self.drafting = Drafting(model, tokenizer, tokenizer.stop_ids, cache_folder, pair, draft_rule, clock)
        """Who drafts, the draft model among them."""
        self.drafting.make = make_drafter or self.drafting.make
        self._clock = clock
        self._busy = threading.Lock()
        self._prefixes = PrefixCache(model, prefix_bytes)

    @classmethod
    def load(cls, config: EngineConfig, on_packed: Callable[[int, int], None] = lambda done, total: None) -> "Engine":
        """Load a GGUF file for the native kernels, or a folder for transformers; `on_packed` is told (done, total)
        while weights are packed.

        Raises ModelMissingError, ModelFileError, UnsupportedModelError or OutOfMemoryError.
        """
        notes = refuse_or_note(config)
        loaded = load(config, on_packed, instructed=True)
        pair, pair_notes = load_pair(config, loaded, on_packed)
        return cls(
            loaded.model,
            loaded.tokenizer,
            loaded.template or "",  # `instructed`: there is one
            notes=(*notes, *loaded.notes, *pair_notes),
            cache_folder=loaded.cache_folder,
            prefix_bytes=config.prefix_bytes,
            pair=pair,
            draft_rule=config.draft_rule,
        )

    @property
    def info(self) -> ModelInfo:
        """Facts of the loaded model, and what is promised of its replies."""
        return self.drafting.promised(self._model.info)

    def count(self, request: CompletionRequest) -> tuple[int, int]:
        """(prompt tokens, source tokens) of a request."""
        tokens = tokenise(request, self._tokenizer, self._template)
        return len(tokens.prompt), len(tokens.source)

    def complete(self, request: CompletionRequest, cancel: CancelFlag | None = None) -> Iterator[EngineEvent]:
        """Decode; yields Started, Prefill, Pass, Text and at last Finished.

        Leaving the iterator stops the work. Raises RequestError, ContextOverflowError, NumericsError.
        """
        if not self._busy.acquire(blocking=False):
            raise RequestError("The engine is busy with another request.")
        cancel = cancel or CancelFlag()
        try:
            with cancel.interrupting(self._interrupt):
                yield from self._complete(request, cancel)
        finally:
            self._model.resume()
            self.drafting.rest()
            self._busy.release()

    def _interrupt(self) -> None:
        self._model.interrupt()
        self.drafting.interrupt()

    def _complete(self, request: CompletionRequest, cancel: CancelFlag) -> Generator[EngineEvent, None, None]:
        meter = Meter(self._clock)
        decided, rerun = self._model.rerun_counts()
        tokens = tokenise(request, self._tokenizer, self._template)
        reply = self._new_reply(request, tokens)
        choose = self.drafting.chooser(request)
        stop_ids = self._tokenizer.stop_ids
        started = self._clock()
        drafter = self.drafting.drafter(request, tokens, choose)
        if drafter:
            meter.drafter_made(self._clock() - started)
        cached = self._prefixes.enter(tokens.prompt)
        try:
            yield Started(len(tokens.prompt), cached, len(tokens.source), self.drafting.model_name)
            meter.prefill_starts(len(tokens.prompt), cached)
            first = yield from prefill(self._model, choose, tokens.prompt, cached)
            if request.max_tokens > 0:
                choose.emitted(1)
                reply.push(first)
                origins = drafter.observe(Draft(), 0, [first], None) if drafter else [PLAIN_ORIGIN]
                meter.first_token(origins)
                yield from reply.take_text(origins, tokens.source_lines)
                if drafter:
                    passes = speculate(self._model, choose, first, drafter, reply, stop_ids, self._clock)
                else:
                    passes = plain(choose, first, reply, self._clock)
                for record in passes:
                    meter.decoded(record)
                    choose.emitted(len(record.emitted))
                    yield _pass_event(record, tokens.source_lines)
                    yield from reply.take_text(record.origins, tokens.source_lines)
                    if cancel.is_set():
                        raise CancelledError("The request was cancelled.")
        except CancelledError:
            reply.cancel()
            yield from reply.take_text([], tokens.source_lines)
        finally:
            self._prefixes.leave([*tokens.prompt, *reply.ids][: self._model.length], len(tokens.prompt))
        decided_now, rerun_now = self._model.rerun_counts()
        reruns = (decided_now - decided, rerun_now - rerun)
        stats = meter.stats(len(reply.ids), choose.mean_logprob, reruns, figures(drafter))
        yield Finished(reply.finish_reason, tuple(reply.ids), stats)

    def _new_reply(self, request: CompletionRequest, tokens: TokenisedRequest) -> Reply:
        room = self.info.context_length - len(tokens.prompt)
        if room < min(request.max_tokens, 1):
            raise ContextOverflowError(
                f"The prompt has {len(tokens.prompt)} tokens; the model's context holds {self.info.context_length}."
            )
        return Reply(
            Detokeniser(self._tokenizer),
            ReplyEnd(request.stop_line, request.anchor, request.anchor_blank_lines),
            RepetitionGuard(tokens.source),
            self._tokenizer.stop_ids,
            min(request.max_tokens, room),
            request.stop,
        )


def _pass_event(record: PassRecord, source_lines: Sequence[int]) -> Pass:
    return Pass(
        rows=1 + len(record.draft.tokens),
        drafted=len(record.draft.tokens),
        accepted=record.accepted,
        emitted=len(record.emitted),
        drafter=record.draft.drafter,
        source_line=source_line(record.draft.source_index, source_lines),
        ms=record.seconds * 1000,
        draft_ms=record.drafter_s * 1000,
    )
