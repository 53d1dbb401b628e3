#include "chips/pjrt/executable.hpp"

#include <utility>

#include "chips/pjrt/abi/executable_abi.hpp"
#include "chips/pjrt/client.hpp"

namespace weft::pjrt {

Executable::Executable(std::shared_ptr<const Client> client) : client_(std::move(client)) {}

Executable::Executable(std::shared_ptr<const Client> client, void* loaded)
    : Executable(std::move(client)) {
  loaded_ = loaded;  // from here on the destructor frees it, also after an exception
  const Plugin& plugin = client_->plugin();
  Block<GetExecutableArgs> executable;
  executable->loaded = loaded;
  plugin.call(kGetExecutable, executable);
  executable_ = executable->executable;
  Block<CountArgs> outputs;
  outputs->executable = executable_;
  plugin.call(kNumOutputs, outputs);
  num_outputs_ = outputs->count;
}

Executable::Executable(Executable&& other) noexcept
    : client_(std::move(other.client_)),
      loaded_(std::exchange(other.loaded_, nullptr)),
      executable_(other.executable_),
      num_outputs_(other.num_outputs_) {}

Executable::~Executable() {
  if (loaded_ == nullptr) return;
  if (executable_ != nullptr) client_->plugin().destroy(kExecutableDestroy, executable_);
  client_->plugin().destroy(kLoadedDestroy, loaded_);
}

LaunchedRun Executable::launch(std::span<void* const> arguments, std::span<const std::int64_t> kept,
                               void* device) const {
  Block<ExecuteOptions> options;
  options->kept_inputs = kept.data();
  options->kept_count = kept.size();
  std::vector<void*> outputs(num_outputs_);
  void* const* const argument_row = arguments.data();
  void** const output_row = outputs.data();
  void* done = nullptr;
  Block<ExecuteArgs> execute;
  execute->loaded = loaded_;
  execute->options = options.get();
  execute->arguments = &argument_row;
  execute->device_count = 1;
  execute->argument_count = arguments.size();
  execute->outputs = &output_row;
  execute->done_events = &done;
  execute->device = device;
  client_->plugin().call(kExecute, execute);
  LaunchedRun run{.outputs = {}, .done = Event(client_, done)};
  run.outputs.reserve(outputs.size());
  for (void* const output : outputs) run.outputs.emplace_back(client_, output);
  return run;
}

std::string Executable::serialize() const {
  Block<SerializeArgs> arguments;
  arguments->executable = executable_;
  client_->plugin().call(kSerialize, arguments);
  std::string bytes(arguments->bytes, arguments->size);
  arguments->free(arguments->owner);
  return bytes;
}

}  // namespace weft::pjrt
