#pragma once
/// LocTable: lines of the user's source as a program's LocIds. For the files of this folder.

#include <cstdint>
#include <functional>
#include <source_location>
#include <unordered_map>

#include "spmd/program/program.hpp"
#include "spmd/tensor/node.hpp"

namespace weft {

/// Of one program. A file's name is told by where it lies, so that a text is made for the first op
/// of a line alone; names that lie in two places give one LocId all the same.
class LocTable {
 public:
  /// The id of "train.cpp:41".
  LocId intern(Program& program, const std::source_location& loc) {
    const Line line{loc.file_name(), loc.line()};
    if (line == last_) return last_id_;
    const auto [place, is_new] = ids_.try_emplace(line, 0);
    if (is_new) place->second = program.intern_loc(file_line(loc));
    last_ = line;
    return last_id_ = place->second;
  }
  void clear() {
    ids_.clear();
    last_ = {};
  }

 private:
  struct Line {
    const char* file = nullptr;
    std::uint_least32_t number = 0;
    friend bool operator==(const Line&, const Line&) = default;
  };
  struct Hash {
    std::size_t operator()(const Line& line) const {
      return std::hash<const char*>{}(line.file) * 31 + line.number;
    }
  };
  std::unordered_map<Line, LocId, Hash> ids_;
  Line last_;  // a line mostly has several ops
  LocId last_id_ = 0;
};

}  // namespace weft
