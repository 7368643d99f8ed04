#include "apps/troupe/served_names.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace troupe {
namespace {

Status bad_name(const std::string& message) {
  return invalid_argument("served-model-name: " + message, "served-model-name");
}

// The model that the name is for, of several.
Result<size_t> model_of(const std::string& name, const std::vector<std::string>& files) {
  const size_t equals = name.find('=');
  const auto file = std::find(files.begin(), files.end(), name.substr(0, equals));
  if (equals == std::string::npos || file == files.end()) {
    std::string all;
    for (const std::string& known : files) all += (all.empty() ? "" : ", ") + known;
    return bad_name(name +
                    " does not say whose name it is; with several models write FILE=NAME, "
                    "where FILE is one of " +
                    all);
  }
  return static_cast<size_t>(file - files.begin());
}

}  // namespace

std::string model_name_of(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

Result<std::vector<std::vector<std::string>>> served_names_of(
    const std::vector<std::string>& model_paths, const std::vector<std::string>& names) {
  std::vector<std::string> files;
  for (const std::string& path : model_paths) files.push_back(model_name_of(path));
  std::vector<std::vector<std::string>> out(files.size());
  for (const std::string& name : names) {
    size_t model = 0;
    std::string own = name;
    if (files.size() > 1) {
      TROUPE_ASSIGN_OR_RETURN(model, model_of(name, files));
      own = name.substr(files[model].size() + 1);
    }
    if (own.empty()) return bad_name("a name must not be empty");
    out[model].push_back(own);
  }
  std::set<std::string> taken;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].empty()) out[i].push_back(files[i]);
    for (const std::string& name : out[i]) {
      if (!taken.insert(name).second) {
        return bad_name("\"" + name +
                        "\" would be the name of two models; give one of them another");
      }
    }
  }
  return out;
}

}  // namespace troupe
