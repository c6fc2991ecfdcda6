"""Does drafting change the output? Every case decoded plainly and with each drafter, compared token by token.

Drives one engine over one model. Invariant: "equal" is `==` on token ids; the token hash covers the contract version,
the model file and the plain ids of every greedy case, so two machines, thread counts or kernel variants agree when one
line agrees. Drawn cases are compared too, but left out of the hash: what is drawn rests on the system's math library.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from editor_engine.bench.measure import Difference, first_difference
from editor_engine.decode.drafting import DrafterFactory
from editor_engine.draft.drafter import Drafter
from editor_engine.engine import Engine
from editor_engine.errors import RequestError
from editor_engine.events import Finished
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
        return {
            "cases": len(self.cases),
            "equal": self.equal,
            "first_difference": self.first_difference,
            "token_hash": self.token_hash,
            "contract_version": self.contract_version,
            "tokens": sum(len(case.ids) for case in self.cases),
            "drafted": sum(case.drafted for case in self.cases),
            "accepted": sum(case.accepted for case in self.cases),
        }


def check_identity(
    model: TargetModel,
    tokenizer: Tokenizer,
    template: str,
    cases: Sequence[IdentityCase],
    drafters: Mapping[str, MakeDrafters],
    progress: Callable[[str], None],
) -> IdentityFigures:
    """Decode every case plainly, then once with each drafter.

    Raises RequestError without cases, and what the engine raises.
    """
    if not cases:
        raise RequestError("There is no case to verify.")
    chosen = _Chosen()
    engine = Engine(model, tokenizer, template, make_drafter=chosen)
    figures = []
    for number, case in enumerate(cases, 1):
        plain = _finished(engine, replace(case.request, draft=False))
        differences: dict[str, Difference | None] = {}
        drafted = accepted = 0
        for name, make in drafters.items():
            progress(f"case {number} of {len(cases)}: {case.name}, {name}")
            chosen.make = make(plain.token_ids)
            answer = _finished(engine, replace(case.request, draft=True))
            differences[name] = first_difference(plain.token_ids, answer.token_ids)
            drafted += answer.stats.drafted or 0
            accepted += answer.stats.accepted or 0
        greedy = case.request.temperature == 0
        figures.append(CaseFigures(case.name, greedy, plain.token_ids, differences, drafted, accepted))
    return IdentityFigures(tuple(figures), model.info.sha256, model.info.contract_version)


class _Chosen:
    """A drafter factory whose choice is made from request to request, so that one engine's cache serves them all."""

    make: DrafterFactory

    def __call__(self, prompt: Sequence[int], source: Sequence[int], stop_ids: Collection[int]) -> Drafter:
        return self.make(prompt, source, stop_ids)


def _finished(engine: Engine, request: CompletionRequest) -> Finished:
    *_, last = engine.complete(request)
    if not isinstance(last, Finished):
        raise RequestError("The engine ended without a result.")
    return last


def table(figures: IdentityFigures) -> str:
    """For people: a line for each case, then what a person on another machine compares."""
    width = max(len(name) for name in ("case", *(case.name for case in figures.cases)))
    lines = [f"{'case':<{width}}  {'tokens':>6}  {'drafted':>7}  {'accepted':>8}  same ids"]
    for case in figures.cases:
        parted = [f"NO, {name} at {found.index}" for name, found in case.differences.items() if found is not None]
        same = ", ".join(parted) or "yes"
        lines.append(f"{case.name:<{width}}  {len(case.ids):>6}  {case.drafted:>7}  {case.accepted:>8}  {same}")
    lines += ["", f"same ids     {figures.equal} of {len(figures.cases)} cases"]
    lines.append(f"token hash   {figures.token_hash} (contract version {figures.contract_version})")
    return "\n".join(lines)
