// What xgrammar calls for its messages. Compiled into the library xgrammar itself: it declares
// these functions and cannot be linked without them.

#include <support/logging.h>

#include <stdexcept>

namespace xgrammar {

// The text becomes a Status of ours, without the place in foreign sources.
void LogFatalImpl(const std::string& /*file*/, int /*line*/, const std::string& message) {
  throw std::runtime_error(message);
}

// Warnings name keywords that are ignored; the validator has refused those by then.
void LogMessageImpl(const std::string& /*file*/, int /*line*/, int /*level*/,
                    const std::string& /*message*/) {}

}  // namespace xgrammar
