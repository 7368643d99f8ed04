#pragma once
// Finds the first occurrence of any of a few stop strings in a text that arrives in pieces, and
// holds back what might still become the beginning of one.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

enum class StopText {
  kExclude,  // the stop string is cut from the text
  kInclude,  // the text ends with the stop string
};

// Value type. Text is UTF-8; pieces end at code point boundaries, and so does everything returned.
// The result is that of searching the whole text at once, however it was cut into pieces: the
// earliest occurrence wins, and among those that begin at one place the shortest.
class StopMatcher {
 public:
  // `stops` are not empty; an empty list passes everything through at once.
  StopMatcher(std::vector<std::string> stops, StopText stop_text);

  // Takes the next piece and returns what can be shown now. After a match, and after flush(),
  // returns nothing more.
  [[nodiscard]] std::string push(std::string_view piece);
  // The text ended for another reason: returns what was held back. May still find a match: one that
  // waited for an earlier, longer one to be completed.
  [[nodiscard]] std::string flush();

  [[nodiscard]] bool matched() const { return matched_; }
  // The stop string that was found, or empty.
  [[nodiscard]] const std::string& found() const { return found_; }
  // Bytes held back now: less than the longest stop string.
  [[nodiscard]] size_t held_bytes() const { return held_.size(); }

 private:
  struct Match {
    size_t begin = std::string::npos;
    size_t end = std::string::npos;
    const std::string* stop = nullptr;
  };
  [[nodiscard]] Match find_first() const;
  std::string end_at(const Match& match);

  std::vector<std::string> stops_;
  StopText stop_text_;
  std::string held_;
  std::string found_;
  bool matched_ = false;
  bool ended_ = false;
};

}  // namespace troupe
