#pragma once
/// TensorChoice: decides which tensors `weft export` and `weft import` take, under which names, and
/// with which dtype.

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
  /// Adds the options --filter, --rename and --cast to a command.
  void add_options(CLI::App& command);
  /// Compiles the given patterns. Throws invalid_argument for an invalid pattern, and for a dtype
  /// that --cast doesn't take.
  void prepare();

  /// Returns whether --filter takes the tensor. Without a filter, all tensors are taken.
  bool takes(const std::string& name) const;
  /// Returns the tensor's name after all --rename options. Throws invalid_argument for a name that
  /// becomes empty, and for a name that another tensor has.
  std::string rename(const std::string& name);
  /// Returns the dtype to which --cast converts elements of this dtype.
  DType cast(DType dtype) const;

 private:
  std::vector<std::string> filter_options_;
  std::vector<std::string> rename_options_;
  std::string cast_option_;
  std::vector<std::regex> filters_;
  std::vector<std::pair<std::regex, std::string>> renames_;
  std::optional<DType> cast_;
  std::map<std::string, std::string> given_;  ///< old names by new names
};

/// Converts elements from one dtype to another.
std::vector<std::byte> cast_elements(std::vector<std::byte> elements, DType from, DType to);

}  // namespace weft
