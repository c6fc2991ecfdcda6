"""Templates that loop, grow or reach out end with a reason; harmless ones give what plain Jinja gives."""

import sys
from types import FrameType

import pytest
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from editor_engine.errors import UnsupportedModelError
from editor_engine.requests import Message
from editor_engine.text import template_sandbox
from editor_engine.text.chat_template import render_prompt
from editor_engine.text.template_sandbox import Sandbox, limited

MESSAGES = [Message("system", "s"), Message("user", "u")]
NAMESPACE = "{% set ns = namespace(x=START) %}{% for i in range(60) %}{% set ns.x = STEP %}{% endfor %}"


def grown(start: str, step: str, shown: str = "{{ ns.x }}") -> str:
    return NAMESPACE.replace("START", start).replace("STEP", step) + shown


ENDLESS = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "filters": "{{ range(99999)|map('string')|list|groupby(0)|map(attribute=1)|map('sort')|map('join')|list * 99 }}"
    "{% for a in range(99999) %}{{ range(99999)|sum }}{% endfor %}",
    "a list of itself": grown("['a']", "[ns.x, ns.x]"),
    "its JSON": grown("['a']", "[ns.x, ns.x]", "{{ ns.x|tojson }}"),
    "its text": grown("['a']", "[ns.x, ns.x]", "{{ 'a' ~ ns.x }}"),
}

LONG = {
    "product": "{{ 'a' * 10**10 }}",
    "list": "{{ [1] * 10**10 }}",
    "power": "{{ 9 ** 99999 ** 3 }}",
    "squares": grown("3", "ns.x * ns.x"),
    "doubled": grown("'a'", "ns.x ~ ns.x"),
    "added": grown("'a'", "ns.x + ns.x"),
    "joined": grown("'a'", "[ns.x, ns.x]|join"),
    "joined by a method": grown("'a'", "''.join([ns.x, ns.x])"),
    "joined by an attribute": grown("'a'", "[{'k': ns.x}, {'k': ns.x}]|join('', 'k')"),
    "replaced": grown("'a'", "ns.x.replace('a', 'aaaa')"),
    "replaced by a filter": grown("'a'", "ns.x|replace('a', 'aaaa')"),
    "percent": "{{ '%2000000000d' % 1 }}",
    "percent, told": "{{ '%*d' % (10**9, 1) }}",
    "filter format": "{{ '%*d'|format(10**9, 1) }}",
    "braces": "{{ '{:>20000000000}'.format(1) }}",
    "braces, told": "{{ '{:{w[0]}}'.format(1, w=[10**9]) }}",
    "centre": "{{ 'a'|center(20000000000) }}",
    "left": "{{ 'a'.ljust(10**10) }}",
    "tabs": "{{ 'a\t'.expandtabs(10**9) }}",
    "JSON": "{{ messages|tojson(indent=10**9) }}",
    "glue": "{{ ('a' * 99999).join(range(99999)|map('string')) }}",
    "block": "{% set x %}{% for i in range(99999) %}{{ 'a' * 999999 }}{% endfor %}{% endset %}{{ x }}",
    "pieces": grown("['a' * 9999999]", "ns.x + [ns.x[0][1:]]"),
    "upper case": "{% set a = 'a' * 9999999 %}" + grown("[a]", "ns.x + [a|upper]"),
    "output": "{% for i in range(99999) %}{{ 'a' * 999999 }}{% endfor %}",
}


@pytest.mark.parametrize("template", ENDLESS.values(), ids=ENDLESS.keys())
def test_a_template_that_does_not_end_is_ended(template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_sandbox, "CPU_SECONDS", 0.1)
    with pytest.raises(UnsupportedModelError, match=r"it has not ended after 0\.1 s of processor time\.$"):
        render_prompt(template, MESSAGES)


@pytest.mark.parametrize("template", LONG.values(), ids=LONG.keys())
def test_what_would_be_too_long_is_not_made(template: str) -> None:
    with pytest.raises(UnsupportedModelError, match=r"(too much text|of any width)\.$"):
        render_prompt(template, MESSAGES)


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ raise_exception.__globals__.json }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ '{0.__class__.__mro__}'.format(1) }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{{ messages.append(1) }}",
        "{{ lipsum(n=9) }}",
        "{{ messages|random }}",
    ],
)
def test_nothing_outside_is_reached_and_nothing_is_left_to_chance(template: str) -> None:
    with pytest.raises(UnsupportedModelError, match="cannot be used"):
        render_prompt(template + "{{ messages[0].content }}{{ messages[1].content }}", MESSAGES)


@pytest.mark.parametrize(
    "template",
    [
        "{{ 'a' ~ 1 ~ none ~ [1, 'b'] ~ 2.5 }}",
        "{{ 1 + 2.5 }} {{ 3 * 4 }} {{ 2 ** 10 }} {{ 10 ** 9 + 0.5 }} {{ 7 % 4 }} {{ [1] + [10 ** 9] }} {{ 2 ** -1 }}",
        "{{ 'ab' * 3 }}{{ '%s-%d' % ('x', 4) }}{{ '%.2f'|format(2.345) }}{{ '{:>5}|{a}'.format('x', a=1) }}",
        "{{ m|map(attribute='k')|join(', ') }}{{ m|join('-', 'k') }}{{ [10 ** 9, 'x']|join }}{{ ','.join('ab') }}",
        "{{ m[0].k.split('n', 1)[-1].strip('e')|upper }}{{ 'a\nb'|indent(2) }}{{ 'abc'|replace('b', 'xx') }}",
        "{% set ns = namespace(n=0) %}{% for x in m if x.k != 'two' %}{% set ns.n = ns.n + loop.index %}{% endfor %}"
        "{{ ns.n }}{{ m|length }}{{ m|selectattr('k', 'equalto', 'two')|list }}{{ 'x'|center(9) }}{{ undefined_one }}",
        "{{ 'abcdef'[1:4] }}{{ 'abcdef'[::-1] }}{{ m[1:][0].k }}{{ m[:-1]|length }}{{ m[0]['k'][1] }}{{ (1, 2)[-1:] }}",
        "{% macro f(a, b='q') %}[{{ a ~ b }}]{% endmacro %}{{ f(1) }}{{ f('x', 2) }}{% filter upper %}a{% endfilter %}",
        "{% for x in m %}{% if loop.first %}{% continue %}{% endif %}{{ x.k }}{% endfor %}{{ dict(a=1) }}{{ (1, 2) }}",
    ],
)
def test_harmless_templates_give_what_plain_jinja_gives(template: str) -> None:
    plain = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    values = {"m": [{"k": "one"}, {"k": "two"}, {"k": "three"}]}
    with limited():
        assert Sandbox().from_string(template).render(values) == plain.from_string(template).render(values)


def test_the_watch_of_the_thread_is_put_back() -> None:
    def other(frame: FrameType, event: str, value: object) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(other)
    try:
        with pytest.raises(SecurityError), limited():
            raise SecurityError
        assert sys.gettrace() is other
    finally:
        sys.settrace(before)
