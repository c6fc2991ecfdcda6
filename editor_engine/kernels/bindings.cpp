// The extension module: collects what the other files bind.
//
// Knows nothing of arithmetic or files. Invariant: importing it does no work beyond defining names.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_gguf(nb::module_& module);

NB_MODULE(_native, module) {
    module.doc() = "Native kernels of the editor engine.";
    module.attr("CONTRACT_VERSION") = 1;
    module.attr("LAYOUT_VERSION") = 1;
    module.attr("MAX_ROWS") = 64;
    bind_gguf(module);
}
