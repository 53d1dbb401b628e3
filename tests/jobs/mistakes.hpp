#pragma once
/// Mistakes that a program makes when it is ported to weft.

#include <string>
#include <vector>

#include <weft/weft.hpp>

namespace weft::testing {

/// Makes the mistake that config["mistake"] names.
extern Loop makes_mistake;

struct Mistake {
  std::string name;
  int workers = 0;  ///< the number of workers; 0: the loop runs in this process
};
/// Returns all mistakes that makes_mistake can make.
std::vector<Mistake> mistakes();

/// These functions make mistakes outside a loop, and throw.
void adds_outside_a_loop();
void asks_for_a_mesh_of_other_size();

}  // namespace weft::testing
