#include "loadgen/sse.h"

#include "loadgen/limits.h"

namespace troupe::loadgen {

Status SseParser::push(std::string_view bytes, std::vector<std::string>& events) {
  while (!bytes.empty()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const size_t end = bytes.find_first_of("\r\n");
    line_.append(bytes.substr(0, end));
    if (line_.size() + data_.size() > kEventBytesMax) {
      return {StatusCode::kResourceExhausted,
              "an event of more than " + std::to_string(kEventBytesMax) + " bytes"};
    }
    if (end == std::string_view::npos) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    end_line(events);
  }
  return ok_status();
}

void SseParser::end_line(std::vector<std::string>& events) {
  if (line_.empty()) {
    if (has_data_) events.push_back(std::move(data_));
    data_.clear();
    has_data_ = false;
    return;
  }
  constexpr std::string_view kField = "data";
  std::string_view line = line_;
  if (line.starts_with(kField) && (line.size() == kField.size() || line[kField.size()] == ':')) {
    line.remove_prefix(std::min(line.size(), kField.size() + 1));
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (has_data_) data_ += '\n';
    data_ += line;
    has_data_ = true;
  }
  line_.clear();
}

}  // namespace troupe::loadgen
