// The one exception type of the kernels; bindings.cpp turns it into the class of editor_engine.errors its kind names.
#pragma once

#include <stdexcept>
#include <string>

namespace redraft {

class Failure : public std::runtime_error {
  public:
    enum class Kind { ModelFile, Unsupported, OutOfMemory, Numerics, ContextOverflow, Cancelled, Request };
    Failure(Kind kind, const std::string& sentence) : std::runtime_error(sentence), kind(kind) {}
    const Kind kind;
};

} // namespace redraft
