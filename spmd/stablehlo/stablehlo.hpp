#pragma once
/// StableHlo: the program of one chip as text of StableHLO, for compilers that read it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// Says how the text writes collectives, and how a chip learns its position in the mesh.
enum class CollectiveForm : std::uint8_t {
  /// Writes StableHLO's own ops. The program runs on as many replicas as the mesh has chips, and
  /// replica r is the chip at position r. Replica groups are in the order of weft's groups.
  replicas,
  /// Writes custom_calls of kCollectiveTarget with API version 4. The program runs on one replica
  /// for each chip, and has an argument with the chip's position (StableHloArgument::Role).
  ///
  /// A call has the operands (x, token) and the results (y, token). The token is i32[]. It is the
  /// chip's position in the mesh, and each call must copy it from its operand to its result: it
  /// keeps the order of the program's collectives, also in loops and branches. The backend_config
  /// is {collective = N : i64}, an index in StableHlo::collectives.
  calls,
};

/// The names of the functions that custom_calls in the text call. Their operands and results are
/// row-major. The backend_config of a kCustomOpTarget is {name = "NAME", op = N : i64, rule =
/// "RULE"}: the CustomTarget, and the number of the op in the program.
inline constexpr std::string_view kCollectiveTarget = "weft.collective";
inline constexpr std::string_view kCustomOpTarget = "weft.custom_op";

/// Says where an output is written.
enum class OutputHome : std::uint8_t {
  fresh,  ///< in memory that the runtime allocates
  /// In an argument of its own, which the program doesn't read (StableHloArgument::Role::place).
  place,
  updated,  ///< in the argument of the input that the output updates
};

struct StableHloOptions {
  CollectiveForm collectives = CollectiveForm::replicas;
  std::vector<OutputHome> homes{};  ///< by output of the program; empty: all are fresh
  /// Looks for NaN and infinity in the result of every op (weft/inspect/debug.hpp).
  bool detects_anomaly = false;
};

/// An argument of the function `main`.
struct StableHloArgument {
  enum class Role : std::uint8_t {
    input,     ///< `number` is the program's input
    place,     ///< `number` is the output that is written here
    position,  ///< i32[]: the chip's position in the mesh; `number` is 0
  };
  Role role = Role::input;
  std::uint32_t number = 0;
  TensorType type{};         ///< on the chip
  std::int32_t result = -1;  ///< the result that is written to this argument; -1: none
};

/// A result of the function `main`.
struct StableHloResult {
  enum class Role : std::uint8_t {
    output,  ///< `number` is the program's output
    /// i32[2]: {op, what}. `op` is the number of the first op that found a fault, or -1. A
    /// check_index found the index `what`. With detects_anomaly, any other op made a NaN (1) or an
    /// infinity (2), or an operand that no op computed has a NaN (3).
    faults,
  };
  Role role = Role::output;
  std::uint32_t number = 0;
  TensorType type{};
};

struct StableHlo {
  /// A module in generic form. Its only function is `main`.
  std::string text;
  std::vector<StableHloArgument> arguments;  ///< all inputs in order, places, then the position
  std::vector<StableHloResult> results;      ///< all outputs in order, then faults if ops check
  std::vector<OpId> collectives;             ///< by number, in the order of the program
};

/// Writes a chip's program, such as Plan::program, for a mesh. `name` becomes the name of the
/// module; characters other than letters, digits and '_' become '_'. The same program, mesh and
/// options give the same text. Throws invalid_argument for ops of global programs (enter, leave),
/// and for homes that don't fit the outputs.
StableHlo to_stablehlo(const Program& chip_program, const Mesh& mesh, std::string_view name,
                       const StableHloOptions& options = {});

}  // namespace weft
