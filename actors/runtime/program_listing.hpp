#pragma once
/// ProgramListing: what WEFT_DEBUG and WEFT_DUMP_TO show of a worker's programs.

#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "spmd/plan/plan.hpp"

namespace weft {

class ProgramListing {
 public:
  /// `dir`: from WEFT_DUMP_TO, "" for none; `level`: from WEFT_DEBUG. Of the workers, which have
  /// all the same to say, one has more than "" and 0.
  ProgramListing(std::string dir, int level) : dir_(std::move(dir)), level_(level) {}

  /// Logs it if the level is `level` or more.
  template <typename... Args>
  void debug(int level, fmt::format_string<Args...> format, Args&&... args) const {
    if (level_ >= level) log(fmt::format(format, std::forward<Args>(args)...));
  }
  /// Lists what each pass gives, in order: program-2.1-canonicalize.txt.
  PassObserver passes(std::uint32_t number) const;
  void dump_plan(std::uint32_t number, const Plan& plan) const;

 private:
  static void log(const std::string& text);

  std::string dir_;
  int level_;
};

}  // namespace weft
