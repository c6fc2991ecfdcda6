// The extension module: collects what the other files bind, and turns Failure into the engine's own errors.
//
// Knows nothing of arithmetic or files. Invariant: importing it does no work beyond defining names.
#include "bind.h"

namespace nb = nanobind;

void bind_gguf(nb::module_& module);

namespace redraft {

void bind_pack(nb::module_& module);
void bind_ops(nb::module_& module);
void bind_model(nb::module_& module);

namespace {

const char* class_of(Failure::Kind kind) {
    switch (kind) {
    case Failure::Kind::ModelFile:
        return "ModelFileError";
    case Failure::Kind::Unsupported:
        return "UnsupportedModelError";
    case Failure::Kind::OutOfMemory:
        return "OutOfMemoryError";
    case Failure::Kind::Numerics:
        return "NumericsError";
    case Failure::Kind::ContextOverflow:
        return "ContextOverflowError";
    case Failure::Kind::Cancelled:
        return "CancelledError";
    case Failure::Kind::Request:
        return "RequestError";
    }
    return "EngineError";
}

void raise_engine_error(const std::exception_ptr& thrown, void*) {
    try {
        std::rethrow_exception(thrown);
    } catch (const Failure& failure) {
        const nb::object type = nb::module_::import_("editor_engine.errors").attr(class_of(failure.kind));
        PyErr_SetString(type.ptr(), failure.what());
    } catch (const std::bad_alloc&) {
        const nb::object type = nb::module_::import_("editor_engine.errors").attr("OutOfMemoryError");
        PyErr_SetString(type.ptr(), "The memory of this machine does not suffice; close other programs, or take a shorter "
                                    "context or a smaller model.");
    }
}

} // namespace

} // namespace redraft

NB_MODULE(_native, module) {
    module.doc() = "Native kernels of the editor engine.";
    module.attr("CONTRACT_VERSION") = redraft::kContractVersion;
    module.attr("LAYOUT_VERSION") = redraft::kLayoutVersion;
    module.attr("MAX_ROWS") = redraft::kMaxRows;
    nb::register_exception_translator(redraft::raise_engine_error);
    bind_gguf(module);
    redraft::bind_pack(module);
    redraft::bind_ops(module);
    redraft::bind_model(module);
}
