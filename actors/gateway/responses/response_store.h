#pragma once
// The responses that clients may come back to by id, as many as fit.

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "actors/gateway/responses/limits.h"
#include "troupe/status.h"

namespace troupe {

struct StoredResponse {
  std::string body;          // the response object
  std::string input_items;   // what its request sent: a JSON array, each item with an id
  std::string conversation;  // all turns so far, without instructions: chat messages, a JSON array
};

// Kept in memory and lost with the process. Loop thread only.
class ResponseStore final {
 public:
  explicit ResponseStore(size_t count_max = kStoredResponsesMax,
                         size_t bytes_max = kStoredResponseBytesMax)
      : count_max_(count_max), bytes_max_(bytes_max) {}

  // Drops the least recently used ones until this one fits; one that never fits is not kept. Ids
  // are not stored twice.
  void put(std::string id, StoredResponse response);
  // Null: not here (any more). The result is valid until the next put() or erase().
  [[nodiscard]] const StoredResponse* find(std::string_view id);
  // Whether it was there.
  bool erase(std::string_view id);

  [[nodiscard]] size_t size() const { return by_use_.size(); }
  [[nodiscard]] size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    std::string id;
    StoredResponse response;
    [[nodiscard]] size_t bytes() const {
      return id.size() + response.body.size() + response.input_items.size() +
             response.conversation.size();
    }
  };
  using Entries = std::list<Entry>;

  void drop(Entries::iterator entry);

  size_t count_max_;
  size_t bytes_max_;
  size_t bytes_ = 0;
  Entries by_use_;  // the most recently used one first
  std::unordered_map<std::string, Entries::iterator> by_id_;
};

// What a client hears that names a response which is not stored: kNotFound.
[[nodiscard]] Status not_stored(std::string_view id, std::string param);

}  // namespace troupe
