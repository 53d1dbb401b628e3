#pragma once
/// Foreign calls: functions of weft that a running program calls on a CPU.

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "chips/pjrt/client.hpp"

namespace weft::pjrt {

/// A call from a running program. Operands and results may be used only during the call.
struct ForeignCall {
  std::vector<const std::byte*> operands;
  std::vector<std::byte*> results;
  std::int64_t number = 0;  ///< the value of the target's number attribute
};

/// Receives the foreign calls of one run after another. Threads of the plug-in make the calls.
class ForeignReceiver {
 public:
  virtual ~ForeignReceiver() = default;
  /// Carries out a call of kCollectiveTarget. `call.number` is the collective's number. An
  /// exception ends the run with an error.
  virtual void on_collective(const ForeignCall& call) = 0;
  /// Carries out a call of kCustomOpTarget. `call.number` is the op's id.
  virtual void on_custom_op(const ForeignCall& call) = 0;
};

/// Registers weft's functions with the plug-in, once in a process. The plug-in compiles programs
/// that call these functions only afterwards. Throws unavailable if the plug-in has no foreign
/// calls.
void register_foreign_calls(const Plugin& plugin);

/// Connects runs with the object that receives their calls. The context must outlive the runs.
class ForeignContext {
 public:
  /// Registers weft's functions first, as register_foreign_calls() does.
  ForeignContext(std::shared_ptr<const Client> client, ForeignReceiver& receiver);
  ForeignContext(const ForeignContext&) = delete;
  ForeignContext& operator=(const ForeignContext&) = delete;
  ~ForeignContext();

  /// Returns the `context` argument for Executable::launch().
  void* handle() const { return handle_; }

 private:
  std::shared_ptr<const Client> client_;
  void* handle_ = nullptr;
};

}  // namespace weft::pjrt
