"""vLLM's counters, as its metrics page has them (written from its public sources)."""

from app.clients.spec_counters import SpecCounters, read_counters

PAGE = """# HELP vllm:spec_decode_num_draft_tokens_total Number of draft tokens.
# TYPE vllm:spec_decode_num_draft_tokens_total counter
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 129.0
vllm:spec_decode_num_draft_tokens_total{engine="1",model_name="m"} 1.0
vllm:spec_decode_num_draft_tokens_created{engine="0",model_name="m"} 1.7e+09
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 10.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 9.0
vllm:generation_tokens_total{engine="0",model_name="m"} 1.5e+02
"""


def test_counters_are_summed_over_engines() -> None:
    assert read_counters(PAGE) == SpecCounters(130, 10, 150)


def test_a_server_that_does_not_draft_has_none() -> None:
    assert read_counters("vllm:generation_tokens_total 5\n") is None
    assert read_counters(None) is None and read_counters({"a": 1}) is None and read_counters("") is None
    assert read_counters(PAGE.replace("129.0", "1e")) is None
    assert read_counters(PAGE.replace("129.0", "1e999")) is None


def test_counts_are_a_request_s_only_where_nobody_else_was_served() -> None:
    before, after = SpecCounters(100, 50, 1000), SpecCounters(140, 80, 1042)
    assert after.since(before, 42) == (40, 30)
    assert after.since(before, 41) is None
    assert after.since(before, None) is None
