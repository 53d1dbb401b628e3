#pragma once
/// Makes random programs with random shardings, for tests that compare passes with the interpreter.

#include <cstdint>
#include <random>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"
#include "spmd/reference/interpret.hpp"

namespace weft::testing {

/// Random numbers that are the same for a seed on every platform.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// Returns a number from 0 to bound - 1.
  std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }
  bool one_in(std::uint64_t count) { return below(count) == 0; }

 private:
  std::mt19937_64 engine_;
};

/// Shards random dims over each atom or none, seldom a dim that the atom doesn't divide.
Sharding random_sharding(const Mesh& mesh, const Shape& shape, Random& random);

/// Returns a program of 2 to 20 ops on values of 0 to 4 dims. It has all kinds of ops that keep
/// small integers exact; sums stay below 2^50 for inputs from -2 to 2. Inputs, outputs and
/// constraints have random shardings: over axes or parts of axes, open or closed, with priorities 0
/// to 2.
Program random_program(const Mesh& mesh, Random& random);
/// Like random_program(), with some inputs of u8, i8, f16 or bf16, which are converted to f32
/// first.
Program random_program_of_narrow(const Mesh& mesh, Random& random);
/// Like random_program(), with functions of shard_map.
Program random_program_of_shards(const Mesh& mesh, Random& random);
/// Like random_program(), but every op has a gradient, and the limit on the size of sums is lower.
/// The outputs are a loss and the gradient of the loss with respect to each floating input.
Program random_program_of_gradients(const Mesh& mesh, Random& random);
/// Like random_program_of_gradients(), with the gradients of a weighted sum of these gradients. The
/// limit on the size of sums is even lower.
Program random_program_of_second_gradients(const Mesh& mesh, Random& random);

/// Returns inputs of a program: integers from -2 to 2, for u8 from 0 to 2, and for pred 0 and 1.
std::vector<Elements> small_integers(const Program& program, Random& random);

}  // namespace weft::testing
