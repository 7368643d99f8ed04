#pragma once
// Requests, answers and errors between the values of the public headers and Cap'n Proto.

#include <kj/exception.h>

#include <vector>

#include "schema/serving.capnp.h"
#include "troupe/client/types.h"
#include "troupe/status.h"

namespace troupe::client {

void fill(const CompletionRequest& in, rpc::Serving::CompleteParams::Builder out);
void fill(const ChatRequest& in, rpc::Serving::ChatParams::Builder out);

[[nodiscard]] std::vector<Choice> to_choices(capnp::List<rpc::Choice>::Reader in);
[[nodiscard]] Answer to_answer(rpc::Answer::Reader in);
[[nodiscard]] Model to_model(rpc::Model::Reader in);

// What the server said with an error, by its structure; or, where there is none, by its exception.
[[nodiscard]] Status to_status(rpc::Error::Reader error);
[[nodiscard]] Status to_status(const kj::Exception& exception);

[[nodiscard]] std::string to_string(capnp::Text::Reader text);

}  // namespace troupe::client
