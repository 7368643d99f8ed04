#pragma once
#include <cstdint>
#include <string>

#include "troupe/status.h"

namespace troupe::loadgen {

// Where a server is.
struct Url {
  bool is_tls = false;
  std::string host;  // a name or an address; an IPv6 address without its brackets
  uint16_t port = 80;
  std::string base;  // what stands before /v1: empty, or "/path" without slash at its end

  [[nodiscard]] std::string host_header() const;
  [[nodiscard]] std::string address() const;  // host and port, as resolvers take them
  bool operator==(const Url&) const = default;
};

// http[s]://HOST[:PORT][/PATH], with or without "/v1" at its end. kInvalidArgument names --url, the
// rule and the fix.
[[nodiscard]] Result<Url> parse_url(const std::string& text);

}  // namespace troupe::loadgen
