"""The wire: every record comes back equal through real JSON, and nothing else comes in but by the named error."""

import dataclasses
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine import errors, wire
from editor_engine.events import (
    DraftModelStats,
    EngineEvent,
    Finished,
    FinishReason,
    Pass,
    Prefill,
    Provenance,
    Span,
    Started,
    Stats,
    Text,
)
from editor_engine.models.target import ModelInfo
from editor_engine.requests import CompletionRequest, Message

COUNT = st.integers(min_value=-(2**70), max_value=2**70)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text()  # lone surrogates among them
LINE = st.none() | COUNT
SPANS = st.lists(st.builds(Span, COUNT, st.sampled_from(Provenance), LINE)).map(tuple)
DRAFT_MODEL = st.builds(
    DraftModelStats,
    name=TEXT,
    passes=COUNT,
    read_tokens=COUNT,
    read_s=NUMBER,
    seconds=NUMBER,
    by_position=st.lists(st.tuples(COUNT, COUNT)).map(tuple),
    gain=st.none() | NUMBER,
    decision=TEXT,
    weights_bytes=COUNT,
    cache_bytes=COUNT,
)
STATS = st.builds(
    Stats,
    prompt_tokens=COUNT,
    cached_tokens=COUNT,
    output_tokens=COUNT,
    ttft_s=st.none() | NUMBER,
    prefill_tok_s=st.none() | NUMBER,
    decode_tok_s=st.none() | NUMBER,
    wall_s=NUMBER,
    passes=COUNT,
    drafted=COUNT,
    accepted=COUNT,
    by_drafter=st.dictionaries(TEXT, st.tuples(COUNT, COUNT)),
    by_provenance=st.dictionaries(st.sampled_from(Provenance), COUNT),
    peak_rss_bytes=st.none() | COUNT,
    mean_logprob=st.none() | NUMBER,
    draft_model=st.none() | DRAFT_MODEL,
    rerun_share=st.none() | NUMBER,
)
EVENT: st.SearchStrategy[EngineEvent] = st.one_of(
    st.builds(Started, COUNT, COUNT, COUNT, st.none() | TEXT),
    st.builds(Prefill, COUNT, COUNT),
    st.builds(Pass, COUNT, COUNT, COUNT, COUNT, st.none() | TEXT, LINE, NUMBER, NUMBER),
    st.builds(Text, TEXT, SPANS),
    st.builds(Finished, st.sampled_from(FinishReason), st.lists(COUNT).map(tuple), STATS),
)
REQUEST = st.builds(
    CompletionRequest,
    messages=st.lists(st.builds(Message, TEXT, TEXT)).map(tuple),
    max_tokens=COUNT,
    prefill=TEXT,
    source=TEXT,
    source_line=COUNT,
    stop_line=st.none() | TEXT,
    anchor=st.lists(TEXT).map(tuple),
    anchor_blank_lines=COUNT,
    stop=st.lists(TEXT).map(tuple),
    temperature=NUMBER,
    seed=COUNT,
    score=st.booleans(),
    draft=st.booleans(),
)
JSON = st.recursive(
    st.none() | st.booleans() | COUNT | st.floats() | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=12,
)
SEEDED = settings(derandomize=True, deadline=None)


def over_the_wire(data: object) -> Any:
    return json.loads(json.dumps(data))


@SEEDED
@given(EVENT)
def test_an_event_comes_back_equal(event: EngineEvent) -> None:
    assert wire.event_from_json(over_the_wire(wire.event_to_json(event))) == event


@SEEDED
@given(REQUEST)
def test_a_request_comes_back_equal(request: CompletionRequest) -> None:
    assert wire.request_from_json(over_the_wire(wire.request_to_json(request))) == request


@SEEDED
@given(REQUEST)
def test_the_extension_and_the_chat_fields_are_the_whole_request(request: CompletionRequest) -> None:
    whole = wire.request_to_json(request)
    extension = over_the_wire(wire.extension_to_json(request))
    assert set(extension) == set(wire.EXTENSION_FIELDS)
    assert {name: whole[name] for name in wire.CHAT_FIELDS} | extension == over_the_wire(whole)


def test_an_identity_comes_back_equal() -> None:
    info = ModelInfo("Tiny", "llama", "0" * 64, 300, 512, "cpu", 2, "avx2", 1)
    identity = wire.identity_of(info, ("A note.",), "tiny")
    assert (identity.model_id, identity.threads, identity.contract_version) == ("tiny", 2, 1)
    data = over_the_wire(wire.identity_to_json(identity))
    assert wire.identity_from_json(data) == identity
    assert wire.identity_from_json({**data, "of_a_later_version": 1}) == identity
    with pytest.raises(errors.ProtocolError):
        wire.identity_from_json({**data, "threads": "2"})


def test_every_error_comes_back_as_its_own_class() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.EngineError)]
    for kind in kinds:
        back = wire.error_from_json(over_the_wire(wire.error_to_json(kind("A sentence."))))
        assert type(back) is kind
        assert str(back) == "A sentence."


def test_a_subclass_travels_as_the_error_it_is_a_kind_of() -> None:
    class Worse(errors.ModelFileError):
        pass

    assert wire.error_to_json(Worse("Bad."))["code"] == "model_file"


@SEEDED
@given(JSON)
def test_garbage_is_the_named_error_or_a_value(data: object) -> None:
    assert isinstance(wire.error_from_json(data), errors.EngineError)
    for read, error in (
        (wire.event_from_json, errors.ProtocolError),
        (wire.identity_from_json, errors.ProtocolError),
        (wire.request_from_json, errors.RequestError),
    ):
        with pytest.raises(error):
            read(data)


@SEEDED
@given(EVENT | REQUEST, st.data())
def test_a_damaged_record_is_the_named_error_or_a_record(
    record: EngineEvent | CompletionRequest, data: st.DataObject
) -> None:
    request = isinstance(record, CompletionRequest)
    fields = over_the_wire(wire.request_to_json(record) if request else wire.event_to_json(record))  # type: ignore[arg-type]
    fields[data.draw(st.sampled_from(sorted(fields)))] = data.draw(JSON)
    read = wire.request_from_json if request else wire.event_from_json
    named: type[errors.EngineError] = errors.RequestError if request else errors.ProtocolError
    try:
        back = read(fields)
    except named:
        return
    again = wire.request_to_json(back) if request else wire.event_to_json(back)  # type: ignore[arg-type]
    assert over_the_wire(again) == fields


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"colour": 1}, "no field 'colour'"),
        ({"max_tokens": True}, "`max_tokens` must be a whole number"),
        ({"max_tokens": 1.0}, "`max_tokens` must be a whole number"),
        ({"temperature": float("nan")}, "`temperature` must be a finite number"),
        ({"temperature": 10**400}, "`temperature` must be a finite number"),
        ({"messages": [{"role": "user"}]}, r"`messages\[0\]` lacks the field 'content'"),
        ({"messages": [{"role": "user", "content": "a", "name": "b"}]}, r"`messages\[0\]` has no field 'name'"),
        ({"anchor": "line"}, "`anchor` must be a list"),
        ({"draft": None}, "`draft` must be true or false"),
    ],
)
def test_a_wrong_request_is_refused_by_name(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(errors.RequestError, match=sentence):
        wire.request_from_json({"messages": [], "max_tokens": 1, **change})


def test_what_is_left_out_has_its_default() -> None:
    assert wire.request_from_json({"messages": [], "max_tokens": 3}) == CompletionRequest((), 3)


def test_unknown_fields_of_an_event_are_of_a_later_version() -> None:
    assert wire.event_from_json({"type": "prefill", "done": 1, "total": 2, "eta": 3}) == Prefill(1, 2)


def test_every_kind_of_event_has_its_word() -> None:
    kinds = EngineEvent.__args__
    assert {type(event) for event in (wire._EVENTS[word] for word in wire._EVENTS)} == {type}
    assert set(wire._EVENTS.values()) == set(kinds)
    assert all(dataclasses.is_dataclass(kind) for kind in kinds)


def test_the_wire_is_light() -> None:
    heavy = "[name for name in ('numpy', 'tokenizers', 'jinja2', 'fastapi', 'pydantic') if name in sys.modules]"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, editor_engine.wire; print({heavy})"], capture_output=True, check=True
    )
    assert done.stdout.strip() == b"[]"
