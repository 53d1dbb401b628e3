#pragma once
/// TensorChoice: which tensors `weft export` and `weft import` take, under which names, as which
/// dtype.

#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "transport/storage/state_file.hpp"

namespace weft {

class TensorChoice {
 public:
  /// Adds --filter, --rename and --cast.
  void add_options(CLI::App& command);
  /// Compiles the patterns that were given. Throws invalid_argument for one that is none, and for
  /// another dtype than --cast takes.
  void prepare();

  /// Whether --filter takes it; without one, all are taken.
  bool takes(const std::string& name) const;
  /// Its name after all --rename. Throws invalid_argument for one without a letter left, and for
  /// one that another tensor has got.
  std::string rename(const std::string& name);
  /// The dtype that --cast gives elements of this one.
  DType cast(DType dtype) const;

 private:
  std::vector<std::string> filter_options_;
  std::vector<std::string> rename_options_;
  std::string cast_option_;
  std::vector<std::regex> filters_;
  std::vector<std::pair<std::regex, std::string>> renames_;
  std::optional<DType> cast_;
  std::map<std::string, std::string> given_;  ///< by new name
};

/// Elements of one dtype as those of another.
std::vector<std::byte> cast_elements(std::vector<std::byte> elements, DType from, DType to);

}  // namespace weft
