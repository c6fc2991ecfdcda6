"""Does drafting change the output? Every case decoded plainly and with each drafter, compared token by token.

Drives one engine over one model. Invariant: "equal" is `==` on token ids; the token hash covers the contract version,
the model file and the plain ids of every greedy case, so two machines, thread counts or kernel variants agree when one
line agrees. Drawn cases are compared too, but left out of the hash: what is drawn rests on the system's math library.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from editor_engine.bench.completed import completed
from editor_engine.bench.measure import Difference, first_difference
from editor_engine.decode.draft_pair import DraftPair, Use
from editor_engine.decode.drafting import DrafterFactory
from editor_engine.draft.drafter import Drafter
from editor_engine.engine import Engine
from editor_engine.errors import RequestError
from editor_engine.events import DRAFT_MODEL
from editor_engine.models.target import TargetModel
from editor_engine.requests import CompletionRequest
from editor_engine.text.tokenizer import Tokenizer

MakeDrafters = Callable[[Sequence[int]], DrafterFactory]
"""Plain ids of a case -> what makes its drafter; only one that is told the truth looks at them."""


@dataclass(frozen=True)
class IdentityCase:
    """One completion to decode in every way."""

    name: str
    request: CompletionRequest
    """Its `draft` is not looked at."""


@dataclass(frozen=True)
class Paired:
    """A draft model that is asked wherever those before it have no draft."""

    pair: DraftPair
    before: Mapping[str, MakeDrafters]
    """By the name of both together."""


@dataclass(frozen=True)
class CaseFigures:
    """One case."""

    name: str
    greedy: bool
    ids: tuple[int, ...]
    """Plain decoding's."""
    differences: dict[str, Difference | None]
    """Drafter to where its ids first part from the plain ones; None where they are equal."""
    drafted: int
    """Tokens drafted, over all drafters: without any nothing was proved."""
    accepted: int
    by_model: tuple[int, int] = (0, 0)
    """(drafted, accepted) of the draft model's among them."""

    @property
    def equal(self) -> bool:
        """Every drafter gave the plain ids."""
        return not any(self.differences.values())


@dataclass(frozen=True)
class IdentityFigures:
    """All cases; at least one."""

    cases: tuple[CaseFigures, ...]
    model_sha256: str
    contract_version: int
    draft_model: str | None = None
    """None: there was none."""

    @property
    def equal(self) -> int:
        """Cases without a difference."""
        return sum(case.equal for case in self.cases)

    @property
    def token_hash(self) -> str:
        """SHA-256 of contract version, model file and plain ids."""
        lines = [f"contract {self.contract_version}", f"model {self.model_sha256}"]
        lines += [f"{case.name}: {' '.join(map(str, case.ids))}" for case in self.cases if case.greedy]
        return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()

    @property
    def by_model(self) -> tuple[int, int]:
        """(drafted, accepted) of the draft model's tokens."""
        return sum(case.by_model[0] for case in self.cases), sum(case.by_model[1] for case in self.cases)

    @property
    def first_difference(self) -> dict[str, object] | None:
        """Case, drafter, position and both token ids (None past the end) of the first difference."""
        for case in self.cases:
            for drafter, found in case.differences.items():
                if found is not None:
                    where = {"case": case.name, "drafter": drafter, "position": found.index}
                    return {**where, "plain": found.left, "drafted": found.right}
        return None

    def fields(self) -> dict[str, object]:
        """For the machine interface."""
        drafted, accepted = self.by_model
        model = {"name": self.draft_model, "drafted": drafted, "accepted": accepted}
        return {
            "cases": len(self.cases),
            "equal": self.equal,
            "first_difference": self.first_difference,
            "token_hash": self.token_hash,
            "contract_version": self.contract_version,
            "tokens": sum(len(case.ids) for case in self.cases),
            "drafted": sum(case.drafted for case in self.cases),
            "accepted": sum(case.accepted for case in self.cases),
            "draft_model": None if self.draft_model is None else model,
        }


def check_identity(
    model: TargetModel,
    tokenizer: Tokenizer,
    template: str,
    cases: Sequence[IdentityCase],
    drafters: Mapping[str, MakeDrafters],
    progress: Callable[[str], None],
    paired: Paired | None = None,
) -> IdentityFigures:
    """Decode every case plainly, then once with each drafter, those before a draft model among them.

    Raises RequestError without cases, and what the engine raises.
    """
    if not cases:
        raise RequestError("There is no case to verify.")
    chosen = _Chosen()
    pair = None if paired is None else paired.pair
    engine = Engine(model, tokenizer, template, make_drafter=chosen, pair=pair)
    ways = [(name, make, Use.NEVER) for name, make in drafters.items()]
    if paired is not None:
        ways += [(name, make, Use.ALWAYS) for name, make in paired.before.items()]
    figures = []
    for number, case in enumerate(cases, 1):
        plain = completed(engine, replace(case.request, draft=False))
        differences: dict[str, Difference | None] = {}
        drafted = accepted = 0
        by_model = (0, 0)
        for name, make, use in ways:
            progress(f"case {number} of {len(cases)}: {case.name}, {name}")
            chosen.make = make(plain.token_ids)
            if pair is not None:
                pair.use = use
            answer = completed(engine, replace(case.request, draft=True))
            differences[name] = first_difference(plain.token_ids, answer.token_ids)
            drafted += answer.stats.drafted or 0
            accepted += answer.stats.accepted or 0
            tried, stood = answer.stats.by_drafter.get(DRAFT_MODEL, (0, 0))
            by_model = (by_model[0] + tried, by_model[1] + stood)
        greedy = case.request.temperature == 0
        figures.append(CaseFigures(case.name, greedy, plain.token_ids, differences, drafted, accepted, by_model))
    drafts = None if pair is None else pair.model.info.name
    return IdentityFigures(tuple(figures), model.info.sha256, model.info.contract_version, drafts)


class _Chosen:
    """A drafter factory whose choice is made from request to request, so that one engine's cache serves them all."""

    make: DrafterFactory

    def __call__(self, prompt: Sequence[int], source: Sequence[int], stop_ids: Collection[int]) -> Drafter:
        return self.make(prompt, source, stop_ids)


def table(figures: IdentityFigures) -> str:
    """For people: a line for each case, then what a person on another machine compares."""
    width = max(len(name) for name in ("case", *(case.name for case in figures.cases)))
    lines = [f"{'case':<{width}}  {'tokens':>6}  {'drafted':>7}  {'accepted':>8}  same ids"]
    for case in figures.cases:
        parted = [f"NO, {name} at {found.index}" for name, found in case.differences.items() if found is not None]
        same = ", ".join(parted) or "yes"
        lines.append(f"{case.name:<{width}}  {len(case.ids):>6}  {case.drafted:>7}  {case.accepted:>8}  {same}")
    lines += ["", f"same ids     {figures.equal} of {len(figures.cases)} cases"]
    if figures.draft_model is not None:
        drafted, accepted = figures.by_model
        lines.append(f"draft model  {figures.draft_model}: {accepted} of {drafted} tokens accepted")
    lines.append(f"token hash   {figures.token_hash} (contract version {figures.contract_version})")
    return "\n".join(lines)
