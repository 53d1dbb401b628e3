#pragma once
/// ProgramListing: logs a worker's programs and writes them to files, for WEFT_DEBUG and
/// WEFT_DUMP_TO.

#include <cstdint>
#include <string>
#include <utility>

#include "spmd/plan/plan.hpp"

namespace weft {

class ProgramListing {
 public:
  /// `dir` is from WEFT_DUMP_TO ("": none), `level` from WEFT_DEBUG. All workers have the same
  /// programs, so only one worker gets them; the others get "" and 0.
  ProgramListing(std::string dir, int level) : dir_(std::move(dir)), level_(level) {}

  /// Logs the result of `text()` if WEFT_DEBUG is `level` or more.
  template <typename Text>
  void debug(int level, const Text& text) const {
    if (level_ >= level) log(text());
  }
  /// Writes the result of each pass to a file. The names show the passes' order, as in
  /// program-2.1-canonicalize.txt.
  PassObserver passes(std::uint32_t number) const;
  void dump_plan(std::uint32_t number, const Plan& plan) const;

 private:
  static void log(const std::string& text);

  std::string dir_;
  int level_;
};

}  // namespace weft
