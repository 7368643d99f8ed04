#include "actors/gateway/http/stored_responses.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "actors/gateway/text/escape.h"
#include "base/assert.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kItemsDefault = 20;
constexpr size_t kItemsMost = 100;

StoredAnswer refuse(uint32_t http_status, const char* code, std::string message,
                    std::string param = {}) {
  return {
      {},
      ApiError{http_status, "invalid_request_error", code, std::move(message), std::move(param), 0},
      nullptr};
}

StoredAnswer refuse_method(const char* allow) {
  StoredAnswer answer = refuse(405, "method_not_allowed", std::string("this path takes ") + allow);
  answer.allow = allow;
  return answer;
}

StoredAnswer not_found(std::string_view id) {
  return refuse(404, "not_found", not_stored(id, {}).message());
}

// The value of a name in "a=b&c=d", or nothing. Ids and numbers need no escapes.
std::optional<std::string_view> query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    const size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name) {
      return pair.substr(equals + 1);
    }
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
  }
  return std::nullopt;
}

StoredAnswer list_items(const StoredResponse& stored, std::string_view query) {
  size_t limit = kItemsDefault;
  if (const auto text = query_value(query, "limit")) {
    const auto parsed = std::from_chars(text->data(), text->data() + text->size(), limit);
    if (parsed.ec != std::errc() || parsed.ptr != text->data() + text->size() || limit < 1 ||
        limit > kItemsMost) {
      return refuse(400, "invalid_value", "limit must be an integer in [1, 100]", "limit");
    }
  }
  const std::string_view order = query_value(query, "order").value_or("desc");
  if (order != "asc" && order != "desc") {
    return refuse(400, "invalid_value", "order must be asc or desc", "order");
  }
  Json items = Json::parse(stored.input_items, nullptr, false);
  TROUPE_ASSERT(items.is_array(), stored.input_items.size());
  if (order == "desc") std::reverse(items.begin(), items.end());
  size_t first = 0;
  if (const auto after = query_value(query, "after")) {
    const auto found = std::find_if(items.begin(), items.end(),
                                    [&](const Json& item) { return item["id"] == *after; });
    if (found == items.end()) {
      return refuse(400, "invalid_value", "after must be the id of one of the items", "after");
    }
    first = static_cast<size_t>(found - items.begin()) + 1;
  }
  const size_t end = std::min(items.size(), first + limit);
  Json page = Json::array();
  for (size_t i = first; i < end; ++i) page.push_back(std::move(items[i]));
  const Json body = {{"object", "list"},
                     {"first_id", page.empty() ? Json(nullptr) : page.front()["id"]},
                     {"last_id", page.empty() ? Json(nullptr) : page.back()["id"]},
                     {"has_more", end < items.size()},
                     {"data", page}};
  return {body.dump(), std::nullopt, nullptr};
}

}  // namespace

StoredAnswer answer_stored_response(std::string_view method, std::string_view target,
                                    ResponseStore& store) {
  const std::string_view path = target.substr(0, target.find('?'));
  const std::string_view query =
      path.size() < target.size() ? target.substr(path.size() + 1) : std::string_view();
  const std::string_view id = path.substr(0, path.find('/'));
  const std::string_view below = path.substr(id.size());
  const bool reads = method == "GET" || method == "HEAD";
  if (below == "/cancel") {
    if (method != "POST") return refuse_method("POST");
    return refuse(400, "unsupported_parameter",
                  "there are no background responses here; close the connection of a response to "
                  "cancel it");
  }
  if (!below.empty() && below != "/input_items") {
    return refuse(404, "not_found", "a response has /input_items below it and nothing else");
  }
  if (!below.empty() && !reads) return refuse_method("GET, HEAD");
  if (below.empty() && !reads && method != "DELETE") return refuse_method("GET, HEAD, DELETE");
  if (method == "DELETE") {
    if (!store.erase(id)) return not_found(id);
    std::string body = "{\"id\":";
    append_json_string(body, id);
    return {body + R"(,"object":"response","deleted":true})", std::nullopt, nullptr};
  }
  const StoredResponse* stored = store.find(id);
  if (stored == nullptr) return not_found(id);
  if (!below.empty()) return list_items(*stored, query);
  if (query_value(query, "stream").value_or("false") != "false") {
    return refuse(400, "unsupported_parameter", "a stored response is not streamed", "stream");
  }
  return {stored->body, std::nullopt, nullptr};
}

}  // namespace troupe
