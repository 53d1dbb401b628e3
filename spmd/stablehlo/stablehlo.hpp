#pragma once
/// StableHlo: the program of one chip as StableHLO text, for compilers that read StableHLO.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// The form of collectives in the text, and the source of a chip's position in the mesh.
enum class CollectiveForm : std::uint8_t {
  /// Writes StableHLO's own ops. The program runs on as many replicas as the mesh has chips, and
  /// replica r is the chip at position r. Replica groups are in the order of weft's groups.
  replicas,
  /// Writes custom_calls of kCollectiveTarget with API version 4. The program runs on one replica
  /// for each chip, and has an argument with the chip's position (StableHloArgument::Role).
  ///
  /// A call has the operands (x, token) and the results (y, token). The token is i32[], and its
  /// value is the chip's position in the mesh. Each call must copy the token from operand to
  /// result, because the token keeps the order of the program's collectives, also in loops and
  /// branches. The backend_config is {collective = N : i64}, where N is an index in
  /// StableHlo::collectives.
  calls,
};

/// The names of the functions that custom_calls in the text call. Their operands and results are
/// row-major. A call of kCustomOpTarget has the backend_config {name = "NAME", op = N : i64, rule =
/// "RULE"}: the fields of its CustomTarget, and the op's id in the program.
inline constexpr std::string_view kCollectiveTarget = "weft.collective";
inline constexpr std::string_view kCustomOpTarget = "weft.custom_op";

/// The memory to which an output is written.
enum class OutputHome : std::uint8_t {
  fresh,  ///< in memory that the runtime allocates
  /// In an argument for this output alone, which the program doesn't read (StableHloArgument).
  place,
  updated,  ///< in the argument of the input that the output updates
};

struct StableHloOptions {
  CollectiveForm collectives = CollectiveForm::replicas;
  std::vector<OutputHome> homes{};  ///< indexed by output; empty: all are fresh
  /// Makes the text check the result of every op for NaN and infinity (weft/inspect/debug.hpp).
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
  TensorType type{};         ///< the type of the chip's part
  std::int32_t result = -1;  ///< the result that is written to this argument; -1: none
};

/// A result of the function `main`.
struct StableHloResult {
  enum class Role : std::uint8_t {
    output,  ///< `number` is the program's output
    /// i32[2]: {op, what}. `op` is the number of the first op that found a fault, or -1. If the op
    /// is a check_index, `what` is the refused index. With detects_anomaly, `what` of another op is
    /// 1 if it made a NaN, 2 if it made an infinity, and 3 if an operand that no op computed has a
    /// NaN.
    faults,
  };
  Role role = Role::output;
  std::uint32_t number = 0;
  TensorType type{};
};

struct StableHlo {
  /// A module in generic form. Its only function is `main`.
  std::string text;
  std::vector<StableHloArgument> arguments;  ///< the inputs, the places, then the position
  std::vector<StableHloResult> results;      ///< the outputs, then the faults if ops check
  std::vector<OpId> collectives;             ///< ops by collective number, in program order
};

/// Writes a chip's program, such as Plan::program, for a mesh. The module's name is "weft_" and
/// `name`, with '_' for characters other than letters and digits. The same program, mesh and
/// options give the same text. Throws invalid_argument for ops of global programs (enter, leave),
/// and for homes that don't fit the outputs.
StableHlo to_stablehlo(const Program& chip_program, const Mesh& mesh, std::string_view name,
                       const StableHloOptions& options = {});

/// Throws an error if a run found a fault in its operands or results. `faults` is the value of the
/// result whose role is StableHloResult::Role::faults.
void throw_fault(const Program& program, const std::array<std::int32_t, 2>& faults);

}  // namespace weft
