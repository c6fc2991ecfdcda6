"""The engine as an OpenAI-compatible server over a unix socket or TCP; `run.serve` is the way in."""
