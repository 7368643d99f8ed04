#pragma once
// Which names of `--served-model-name` belong to which of the models that are served.

#include <string>
#include <vector>

#include "troupe/status.h"

namespace troupe {

// "/srv/smol.gguf" as "smol".
[[nodiscard]] std::string model_name_of(const std::string& path);

// The names of each model, in the order of the paths; never empty: without others a model has that
// of its file. `names` are NAME where there is one model, FILE=NAME where there are several, FILE
// being a model's file without folder and ending. kInvalidArgument: a name of no model, of several,
// or that two models would have.
[[nodiscard]] Result<std::vector<std::vector<std::string>>> served_names_of(
    const std::vector<std::string>& model_paths, const std::vector<std::string>& names);

}  // namespace troupe
