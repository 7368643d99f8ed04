#pragma once
// For requests of other APIs that are checked as chat requests: turns the fields that an error
// names back into those that the client sent.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/status.h"

namespace troupe {

class PathRenames {
 public:
  // Paths below `chat` ("messages[2].content") are the client's below `client` ("input[0].output").
  void add(std::string chat, std::string client);
  // The status with its param renamed by the longest path that contains it, in its message too.
  [[nodiscard]] Status apply(const Status& status) const;

 private:
  std::vector<std::pair<std::string, std::string>> paths_;
};

}  // namespace troupe
