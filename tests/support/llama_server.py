"""llama.cpp's own HTTP server on loopback, from the package `xllamacpp`, as a program: MODEL CONTEXT.

Prints its address when it listens, and ends with its stdin. Needs the extra `bench`.
"""

import sys

import xllamacpp


def main() -> None:
    """Serve until stdin ends."""
    parameters = xllamacpp.CommonParams()
    parameters.model.path = sys.argv[1]
    parameters.n_ctx = int(sys.argv[2])
    parameters.n_gpu_layers = 0
    parameters.n_parallel = 1
    # One: several wait for each other in a loop, which on a busy machine takes a hundred times as long.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.verbosity = 0
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
