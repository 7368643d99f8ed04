#include "actors/gateway/openai/path_renames.h"

namespace troupe {
namespace {

bool contains(std::string_view parent, std::string_view path) {
  if (!path.starts_with(parent)) return false;
  return path.size() == parent.size() || path[parent.size()] == '.' || path[parent.size()] == '[';
}

}  // namespace

void PathRenames::add(std::string chat, std::string client) {
  paths_.emplace_back(std::move(chat), std::move(client));
}

Status PathRenames::apply(const Status& status) const {
  const std::pair<std::string, std::string>* best = nullptr;
  for (const auto& path : paths_) {
    if (!contains(path.first, status.param())) continue;
    if (best == nullptr || path.first.size() > best->first.size()) best = &path;
  }
  if (best == nullptr) return status;
  std::string message = status.message();
  // A message names its field first, or nowhere.
  if (const size_t at = message.find(best->first); at != std::string::npos) {
    message.replace(at, best->first.size(), best->second);
  }
  return {status.code(), std::move(message),
          best->second + status.param().substr(best->first.size())};
}

}  // namespace troupe
