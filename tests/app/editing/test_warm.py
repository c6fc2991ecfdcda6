"""What is read before anything is asked is what the edit reads first, and the estimate goes by counts and shares."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from app.clients.in_process import own_client
from app.editing.document import Document, open_bytes
from app.editing.language import detect_language
from app.editing.prompt import build_prompt
from app.editing.region import Region
from app.editing.warm import estimate, warm_request
from app.load_options import LoadOptions
from editor_engine.events import Started
from editor_engine.requests import CancelFlag, CompletionRequest
from tests.support.headless_edit import SOURCE


def document() -> Document:
    return open_bytes(SOURCE.encode(), "sums.py")


def test_the_warm_prompt_is_the_edits_own_up_to_the_instruction() -> None:
    opened = document()
    request = warm_request(opened)
    edit = build_prompt(opened.lines, "Use math.fsum.", detect_language("sums.py")).request(100)
    assert request.max_tokens == 0
    assert request.messages[0] == edit.messages[0]
    warm, full = request.messages[1].content, edit.messages[1].content
    shared = next((at for at, (one, other) in enumerate(zip(warm, full, strict=False)) if one != other), len(warm))
    assert SOURCE in warm[:shared]
    assert full[shared:].startswith("Use math.fsum.")


def test_a_region_shares_the_prompt_up_to_the_file() -> None:
    opened = document()
    region = build_prompt(opened.lines, "Do.", detect_language("sums.py"), Region(4, 8)).messages[1].content
    warm = warm_request(opened).messages[1].content
    shared = next(at for at, (one, other) in enumerate(zip(warm, region, strict=False)) if one != other)
    assert SOURCE.rstrip() in warm[:shared]


def test_estimates() -> None:
    opened = document()
    whole = estimate(opened, (200, 150), "", None, 0)
    assert (whole.prompt, whole.expected, whole.estimated) == (200, 150, True)
    assert estimate(opened, (200, 150), "x" * 40, None, 180).prompt == 30
    assert estimate(opened, (200, 150), "", None, 900).prompt == 0
    part = estimate(opened, (200, 150), "", Region(4, 8), 0)
    inside = sum(len(line) + 1 for line in opened.lines[3:8])
    assert part.expected == -(-150 * inside // len(SOURCE))
    assert estimate(opened, (200, 150), "", Region(1, len(opened.lines)), 0).expected == 150


@pytest.mark.model
def test_the_edit_finds_the_file_in_the_cache(smollm2_path: Path) -> None:
    opened = open_bytes((SOURCE * 5).encode(), "sums.py")
    edit = build_prompt(opened.lines, "Return floats.", detect_language("sums.py")).request(1)
    client = own_client(LoadOptions(str(smollm2_path), 2))

    async def started(request: CompletionRequest) -> Started:
        async with aclosing(client.complete(request, CancelFlag())) as events:
            found = [event async for event in events if isinstance(event, Started)]
        return found[0]

    async def run() -> tuple[Started, Started]:
        try:
            return await started(warm_request(opened)), await started(edit)
        finally:
            await client.close()

    warm, first = asyncio.run(run())
    assert warm.cached_tokens == 0
    assert first.cached_tokens is not None
    assert first.prompt_tokens - first.cached_tokens < 60  # the instruction and what follows it
