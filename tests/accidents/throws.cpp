#include "tests/accidents/throws.hpp"

#include <future>
#include <stdexcept>

#include <fmt/format.h>
#include <weft/weft.hpp>

void throw_here() { throw std::runtime_error(fmt::format("boom in line {}", __LINE__)); }

namespace {

struct NoStdException {};

}  // namespace

void throw_other() { throw NoStdException{}; }

void throw_again() {
  try {
    throw_here();
  } catch (const std::exception&) {
    for (int i = 0; i < 3; ++i) {
      try {
        throw_other();
      } catch (const NoStdException&) {
      }
    }
    throw;
  }
}

void throw_in_thread() { std::async(std::launch::async, throw_here).get(); }

void add_other_shapes() { (weft::full({4, 3}, 0) + weft::full({4, 2}, 0)).to_vector(); }
