#pragma once
// RPC requests as the documents that HTTP bodies are, so that both are checked by the same code and
// refused in the same words.

#include "actors/gateway/openai/request.h"
#include "schema/serving.capnp.h"
#include "troupe/status.h"

namespace troupe {

// kInvalidArgument: a text is not UTF-8, or a token has two biases; everything else is left to
// check_*(). Reading a malformed message throws kj::Exception.
[[nodiscard]] Result<RequestDocument> to_document(rpc::Serving::CompleteParams::Reader request);
[[nodiscard]] Result<RequestDocument> to_document(rpc::Serving::ChatParams::Reader request);
[[nodiscard]] Result<RequestDocument> to_document(rpc::Serving::TokenizeParams::Reader request);
[[nodiscard]] Result<RequestDocument> to_document(rpc::Serving::DetokenizeParams::Reader request);

}  // namespace troupe
