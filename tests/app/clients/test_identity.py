"""What an engine says of itself as a front end shows it: the badge follows the guarantee and nothing else."""

from dataclasses import replace

import pytest

from app.clients.identity import description_of
from app.editing.language import detect_language
from app.editing.prompt import build_prompt
from app.tui.widgets.status_line import Status, status_text
from editor_engine.models.target import ModelInfo
from editor_engine.wire import identity_from_json, identity_of, identity_to_json

NATIVE = ModelInfo("n", "llama", "a" * 64, 10, 4096, "cpu", 2, "avx2", 1)
FOLDER = replace(
    NATIVE,
    device="cuda:0 (20 of 28 layers), cpu",
    isa="nf4 (compute bfloat16, double) eager",
    contract_version=0,
    backend="transformers",
    guarantee="not guaranteed",
    loaded_as='{"quantise": "nf4"}',
)


@pytest.mark.parametrize(
    ("info", "badge", "where"),
    [
        (NATIVE, "exact", "cpu"),
        (replace(NATIVE, guarantee="exact when greedy"), "exact", "cpu"),
        (FOLDER, "not guaranteed", "cuda:0 (20 of 28 layers), cpu, nf4 (compute bfloat16, double) eager"),
        (replace(NATIVE, guarantee="of some other version"), "not guaranteed", "cpu"),
    ],
)
def test_only_what_is_guaranteed_is_called_exact(info: ModelInfo, badge: str, where: str) -> None:
    identity = identity_of(info, ("a note",), "served")
    assert identity_from_json(identity_to_json(identity)) == identity
    described = description_of(identity, "here", ("another",))
    assert (described.exactness, described.where, described.notes) == (badge, where, ("a note", "another"))
    assert (described.backend, described.arithmetic) == (info.backend, info.isa)
    line = status_text(Status(engine=described), 200)
    assert line.endswith(badge) and where in line


def test_an_edit_is_greedy_so_a_promise_for_greedy_text_holds_for_it() -> None:
    assert build_prompt(["x = 1"], "Rename x.", detect_language("a.py")).request(9).temperature == 0


def test_a_server_of_an_older_version_is_native() -> None:
    said = identity_to_json(identity_of(NATIVE, (), "served"))
    for name in ("backend", "guarantee", "loaded_as"):
        del said[name]
    assert description_of(identity_from_json(said), "there").exactness == "exact"
