// Reads any bytes as the parameters of each RPC method that takes a request, and checks what comes
// of them as the service does: it must end in a checked request, in an error that is a short text,
// or in the exception with which the library refuses a malformed message. The input's first byte
// chooses the method; the rest is a message as it travels.

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "actors/gateway/openai/api_error.h"
#include "actors/gateway/openai/request.h"
#include "actors/gateway/rpc/rpc_documents.h"
#include "base/assert.h"

namespace {

using troupe::RequestRules;
using troupe::rpc::Serving;

constexpr size_t kErrorBodyBytesMax = 4096;
constexpr size_t kTraversalFactor = 4;

void check_error(const troupe::Status& status) {
  const std::string body = troupe::format_error(troupe::to_api_error(status));
  TROUPE_ASSERT(body.size() <= kErrorBodyBytesMax, body.size());
  TROUPE_ASSERT(nlohmann::json::accept(body), body);
}

// `check` is check_chat or its like.
template <class Params, class Check>
void take(capnp::MessageReader& message, const Check& check) {
  static const std::array<RequestRules, 2> models = {RequestRules{"m", 1000, 8192},
                                                     RequestRules{"other", 7, 16}};
  const auto document = troupe::to_document(message.getRoot<Params>());
  if (!document.ok()) return check_error(document.status());
  TROUPE_ASSERT(!document->dump().empty());  // throws on text that is not UTF-8
  const auto checked = check(document.value(), std::span<const RequestRules>(models));
  if (!checked.ok()) check_error(checked.status());
}

void take_any(uint8_t method, capnp::MessageReader& message) {
  switch (method % 4) {
    case 0:
      return take<Serving::ChatParams>(message, troupe::check_chat);
    case 1:
      return take<Serving::CompleteParams>(message, troupe::check_completions);
    case 2:
      return take<Serving::TokenizeParams>(message, troupe::check_tokenize);
    default:
      return take<Serving::DetokenizeParams>(message, troupe::check_detokenize);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kWord = sizeof(capnp::word);
  if (size < 1 + kWord) return 0;
  std::vector<uint64_t> words((size - 1) / kWord);
  std::memcpy(words.data(), data + 1, words.size() * kWord);
  // What the RPC stream refuses before it reads a message; see rpc_message_stream.cc.
  if (static_cast<uint32_t>(words.front()) == UINT32_MAX) return 0;
  const auto refused = kj::runCatchingExceptions([&] {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = words.size() * kTraversalFactor + 64;
    capnp::FlatArrayMessageReader message(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(words.data()), words.size()), options);
    take_any(data[0], message);
  });
  // Only the library's own refusals are exceptions: another one would come as a std::exception.
  KJ_IF_MAYBE (exception, refused) {
    const kj::StringPtr text = exception->getDescription();
    TROUPE_ASSERT(!text.startsWith("std::exception"), text.cStr());
  }
  return 0;
}
