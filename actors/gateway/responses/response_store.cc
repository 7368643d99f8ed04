#include "actors/gateway/responses/response_store.h"

#include <iterator>
#include <utility>

#include "actors/gateway/openai/request_limits.h"
#include "actors/gateway/text/escape.h"
#include "base/assert.h"

namespace troupe {

void ResponseStore::put(std::string id, StoredResponse response) {
  TROUPE_ASSERT(!by_id_.contains(id), id);
  Entry entry{std::move(id), std::move(response)};
  const size_t bytes = entry.bytes();
  if (bytes > bytes_max_ || count_max_ == 0) return;
  while (by_use_.size() >= count_max_ || bytes_ + bytes > bytes_max_) {
    drop(std::prev(by_use_.end()));
  }
  bytes_ += bytes;
  by_use_.push_front(std::move(entry));
  by_id_.emplace(by_use_.front().id, by_use_.begin());
}

const StoredResponse* ResponseStore::find(std::string_view id) {
  const auto found = by_id_.find(std::string(id));
  if (found == by_id_.end()) return nullptr;
  by_use_.splice(by_use_.begin(), by_use_, found->second);
  return &by_use_.front().response;
}

bool ResponseStore::erase(std::string_view id) {
  const auto found = by_id_.find(std::string(id));
  if (found == by_id_.end()) return false;
  drop(found->second);
  return true;
}

void ResponseStore::drop(Entries::iterator entry) {
  TROUPE_ASSERT(bytes_ >= entry->bytes(), bytes_, entry->id);
  bytes_ -= entry->bytes();
  by_id_.erase(entry->id);
  by_use_.erase(entry);
}

Status not_stored(std::string_view id, std::string param) {
  return {StatusCode::kNotFound,
          "the response \"" + printable_excerpt(id, kExcerptBytesMax) +
              "\" is not stored here: it was sent with store false, deleted, made by another "
              "process, or dropped for newer ones; send the whole conversation in input",
          std::move(param)};
}

}  // namespace troupe
