#pragma once
/// LocTable: maps lines of the user's source to a program's LocIds. Only the files of this folder
/// use it.

#include <cstdint>
#include <functional>
#include <source_location>
#include <unordered_map>

#include "spmd/program/program.hpp"
#include "spmd/tensor/node.hpp"

namespace weft {

/// Each program has one table. File names are looked up by their address, so that a text is
/// formatted only for the first op of a line. Equal names at two addresses get the same LocId.
class LocTable {
 public:
  /// Returns the id of a text such as "train.cpp:41".
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
  Line last_;  // the last line looked up, because most lines have several ops
  LocId last_id_ = 0;
};

}  // namespace weft
