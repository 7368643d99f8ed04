#pragma once
// How a failed Status looks to an RPC client: an exception's type and text, and a structure.

#include <kj/exception.h>

#include "schema/serving.capnp.h"
#include "troupe/status.h"

namespace troupe {

//   kResourceExhausted, kUnavailable, kDeadlineExceeded, kCancelled   OVERLOADED
//   kUnsupported                                                      UNIMPLEMENTED
//   all others                                                        FAILED
// The text is that of HTTP's error.message.
[[nodiscard]] kj::Exception to_exception(const Status& status);

void fill_error(const Status& status, rpc::Error::Builder out);

}  // namespace troupe
