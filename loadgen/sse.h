#pragma once
// Server-sent events, as they arrive over a connection: in pieces of any size.

#include <string>
#include <string_view>
#include <vector>

#include "troupe/status.h"

namespace troupe::loadgen {

// Reads the stream format of the WHATWG's HTML standard as far as the OpenAI API uses it: lines end
// with LF, CR or CRLF, `data` lines up to a blank one are one event, lines that begin with ":" are
// comments, other fields are dropped. Not thread-safe.
class SseParser {
 public:
  // Appends the data of every event that `bytes` completes, in order. kResourceExhausted: an event
  // is longer than kEventBytesMax; the stream is of no more use.
  [[nodiscard]] Status push(std::string_view bytes, std::vector<std::string>& events);
  // Whether an event had begun when the stream ended; a standard reader drops it.
  [[nodiscard]] bool has_rest() const { return has_data_ || !line_.empty(); }

 private:
  void end_line(std::vector<std::string>& events);

  std::string line_, data_;
  bool has_data_ = false;
  bool after_cr_ = false;  // the next LF belongs to the line end that has been seen
};

}  // namespace troupe::loadgen
