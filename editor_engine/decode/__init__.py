"""From a request's tokens to emitted tokens: prefill, the speculative loop, its plain twin, stopping."""
