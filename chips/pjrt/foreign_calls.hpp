#pragma once
/// Foreign calls: functions of weft that a running program calls on a CPU.

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "chips/pjrt/client.hpp"

namespace weft::pjrt {

/// A call of a program. The memory is the program's, and usable during the call.
struct ForeignCall {
  std::vector<const std::byte*> operands;
  std::vector<std::byte*> results;
  std::int64_t number = 0;  ///< the attribute that the target has
};

/// Takes the calls of one run after another. A plug-in calls it on a thread of its own.
class ForeignReceiver {
 public:
  virtual ~ForeignReceiver() = default;
  /// Takes a call of kCollectiveTarget; its number is that of the collective. What it throws ends
  /// the run with an error.
  virtual void on_collective(const ForeignCall& call) = 0;
  /// Takes a call of kCustomOpTarget; its number is that of the op.
  virtual void on_custom_op(const ForeignCall& call) = 0;
};

/// Registers weft's functions with the plug-in, once in a process; programs that call them compile
/// only then. Throws unavailable if the plug-in has no foreign calls.
void register_foreign_calls(const Plugin& plugin);

/// Connects runs with the receiver of their calls. It must outlive the runs.
class ForeignContext {
 public:
  /// Also does what register_foreign_calls() does.
  ForeignContext(std::shared_ptr<const Client> client, ForeignReceiver& receiver);
  ForeignContext(const ForeignContext&) = delete;
  ForeignContext& operator=(const ForeignContext&) = delete;
  ~ForeignContext();

  /// For Executable::launch().
  void* handle() const { return handle_; }

 private:
  std::shared_ptr<const Client> client_;
  void* handle_ = nullptr;
};

}  // namespace weft::pjrt
