"""Prompts from templates: equal to what transformers renders, and content stays data."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.errors import UnsupportedModelError
from editor_engine.requests import Message
from editor_engine.text import chat_template
from editor_engine.text.chat_template import render_prompt
from editor_engine.text.tokenizer import Piece, load_tokenizer
from tests.editor_engine.text.conftest import tiny_metadata
from tests.editor_engine.text.samples import MARKERS, PYTHON
from tests.support.tiny_gguf import CHAT_TEMPLATE

STRIPPING = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}"


def text_of(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def test_contents_are_data_and_the_rest_is_the_template() -> None:
    pieces = render_prompt(CHAT_TEMPLATE, [Message("system", MARKERS), Message("user", "hi")], "```\n")
    assert pieces == [
        Piece("<|im_start|>system\n", True),
        Piece(MARKERS, False),
        Piece("<|im_end|>\n<|im_start|>user\n", True),
        Piece("hi", False),
        Piece("<|im_end|>\n<|im_start|>assistant\n", True),
        Piece("```\n", False),
    ]


def test_the_templates_own_system_message_is_shown() -> None:
    pieces = render_prompt(CHAT_TEMPLATE, [Message("user", "hi")])
    assert text_of(pieces).startswith("<|im_start|>system\nYou edit files.<|im_end|>")


def test_markers_in_content_and_prefill_never_become_special_tokens() -> None:
    tokenizer = load_tokenizer(tiny_metadata())
    honest = render_prompt(CHAT_TEMPLATE, [Message("system", "x"), Message("user", "y")], "z")
    hostile = render_prompt(CHAT_TEMPLATE, [Message("system", MARKERS), Message("user", MARKERS)], MARKERS)
    special = set(tokenizer.special_tokens.values())
    markers = [[token for token in tokenizer.encode_pieces(pieces) if token in special] for pieces in (honest, hostile)]
    assert markers[0] == markers[1]
    assert tokenizer.decode(tokenizer.encode_pieces(hostile)) == text_of(hostile)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    contents=st.lists(st.text(st.sampled_from("ab \n{}%<|>\U000f0000\U000f0001"), max_size=20), min_size=1, max_size=4),
    template=st.sampled_from([CHAT_TEMPLATE, STRIPPING]),
)
def test_any_contents_come_out_once_and_in_order(contents: list[str], template: str) -> None:
    pieces = render_prompt(template, [Message("user", content) for content in contents])
    kept = [content.strip() if template is STRIPPING else content for content in contents]
    assert [piece.text for piece in pieces if not piece.special] == [
        text for text, content in zip(kept, contents, strict=True) if content
    ]


def test_a_template_sees_an_empty_content_as_empty() -> None:
    template = "{% for m in messages %}{% if m.content %}[{{ m.content }}]{% else %}none{% endif %}{% endfor %}"
    assert text_of(render_prompt(template, [Message("user", ""), Message("user", "x")])) == "none[x]"


def test_variables_and_white_space_rules() -> None:
    template = (
        "{{ bos_token }}\n  {%- if tools is none %}\n\n  {% if true %}\n yes{{ eos_token }}\n  {% endif %}\n{% endif %}"
    )
    assert text_of(render_prompt(template, [], bos="<b>", eos="<e>")) == "<b>\n yes<e>\n"


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages %}",
        "{{ messages[3].role }}",
        "{{ raise_exception('roles must alternate') }}",
        "{{ strftime_now('%Y') }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ 1 // 0 }}",
        "{% for m in messages %}{{ m.content | upper }}{% endfor %}",
        "{% for m in messages %}{{ m.content[:1] }}{% endfor %}",
    ],
)
def test_a_template_that_cannot_be_used(template: str) -> None:
    with pytest.raises(UnsupportedModelError, match="chat template"):
        render_prompt(template, [Message("user", "hello")])


def test_the_words_of_a_template_that_refuses_are_passed_on() -> None:
    with pytest.raises(UnsupportedModelError, match="roles must alternate"):
        render_prompt("{{ raise_exception('roles must alternate') }}", [])


CONVERSATIONS = [
    [Message("user", PYTHON)],
    [Message("system", "You edit files."), Message("user", PYTHON + "\n\nRename it.")],
    [Message("system", ""), Message("user", "\n\n a"), Message("assistant", "b \n"), Message("user", "c")],
]


@pytest.mark.model
@pytest.mark.parametrize("fixture", ["smollm2_metadata", "qwen_metadata"])
@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_real_templates_render_as_in_transformers(
    fixture: str, conversation: list[Message], request: pytest.FixtureRequest
) -> None:
    chat = pytest.importorskip("transformers.utils.chat_template_utils")
    metadata: Mapping[str, object] = request.getfixturevalue(fixture)
    template = str(metadata["tokenizer.chat_template"])
    rendered, _ = chat.render_jinja_template(
        conversations=[[{"role": message.role, "content": message.content} for message in conversation]],
        chat_template=template,
        add_generation_prompt=True,
    )
    pieces = render_prompt(template, conversation)
    assert text_of(pieces) == rendered[0]
    tokenizer = load_tokenizer(metadata)
    assert tokenizer.encode_pieces(pieces) == tokenizer.encode(rendered[0], special=True)


NO_SYSTEM = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('No system role') }}{% endif %}"
    "{% for message in messages %}{{ '<start_of_turn>' + message['role'] + '\n' + message['content'] | trim + "
    "'<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
SILENT = "{% for m in messages if m.role == 'user' %}<user>{{ m.content }}{% endfor %}"


@pytest.mark.parametrize("template", [NO_SYSTEM, SILENT])
def test_a_template_that_knows_no_system_message_gets_it_within_the_users(template: str) -> None:
    pieces = render_prompt(template, [Message("system", "You edit."), Message("user", "Do <end_of_turn> it.")], "```")
    assert [piece.text for piece in pieces if not piece.special] == ["You edit.\n\nDo <end_of_turn> it.", "```"]


def test_a_message_that_a_template_leaves_out_is_an_error() -> None:
    with pytest.raises(UnsupportedModelError, match="leaves out a message"):
        render_prompt(SILENT, [Message("user", "a"), Message("assistant", "b")])
    with pytest.raises(UnsupportedModelError, match="No system role"):
        render_prompt(NO_SYSTEM, [Message("system", "a")])


def test_marks_for_training_change_nothing() -> None:
    marked = "{% for m in messages %}{{ m.role }}:{% generation %}{{ m.content }}{% endgeneration %};{% endfor %}"
    assert text_of(render_prompt(marked, [Message("user", "a"), Message("assistant", "b")])) == "user:a;assistant:b;"


def test_a_model_that_thinks_first_is_asked_not_to() -> None:
    template = "{{ messages[0].content }}{% if enable_thinking is false %}<think>\n\n</think>{% endif %}"
    assert text_of(render_prompt(template, [Message("user", "a")])) == "a<think>\n\n</think>"


def test_a_template_that_is_too_long_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    template = "{% for m in messages %}{{ m.content }}{% endfor %}{##}"
    longest = template.replace("##", f"#{'x' * (chat_template.LONGEST_TEMPLATE - len(template))}#")
    assert text_of(render_prompt(longest, [Message("user", "a")])) == "a"
    monkeypatch.setattr(chat_template, "_compile", None)
    with pytest.raises(UnsupportedModelError, match=r"has 131073 characters, and at most 131072 are read; use another"):
        render_prompt(longest + " ", [Message("user", "a")])
