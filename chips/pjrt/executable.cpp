#include "chips/pjrt/executable.hpp"

#include <utility>

#include "chips/pjrt/abi/executable_abi.hpp"
#include "chips/pjrt/client.hpp"

namespace weft::pjrt {

Executable::Executable(std::shared_ptr<const Client> client) : client_(std::move(client)) {}

Executable::Executable(std::shared_ptr<const Client> client, void* loaded)
    : Executable(std::move(client)) {
  loaded_ = loaded;  // set first, so that the destructor also frees it after an exception
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
                               void* device, void* context) const {
  Block<ExecuteOptions> options;
  options->kept_inputs = kept.data();
  options->kept_count = kept.size();
  options->context = context;
  std::vector<void*> outputs(num_outputs_);
  void* const* const argument_row = arguments.data();
  void** const output_row = outputs.data();
  void* done = nullptr;
  execute(options.get(), {std::span(&argument_row, 1), arguments.size(), &output_row, &done},
          device);
  return run_of(outputs, done);
}

std::string Executable::serialize() const {
  Block<SerializeArgs> arguments;
  arguments->executable = executable_;
  client_->plugin().call(kSerialize, arguments);
  std::string bytes(arguments->bytes, arguments->size);
  arguments->free(arguments->owner);
  return bytes;
}

std::vector<LaunchedRun> Executable::launch_replicas(std::span<const std::vector<void*>> arguments,
                                                     std::span<const std::int64_t> kept,
                                                     void* context) const {
  std::vector<void* const*> argument_rows;
  for (const std::vector<void*>& row : arguments) argument_rows.push_back(row.data());
  std::vector<std::vector<void*>> outputs(arguments.size(), std::vector<void*>(num_outputs_));
  std::vector<void**> output_rows;
  for (std::vector<void*>& row : outputs) output_rows.push_back(row.data());
  std::vector<void*> done(arguments.size());
  Block<ExecuteOptions> options;
  options->kept_inputs = kept.data();
  options->kept_count = kept.size();
  options->context = context;
  execute(options.get(), {argument_rows, arguments.front().size(), output_rows.data(), done.data()},
          nullptr);
  std::vector<LaunchedRun> runs;
  for (std::size_t i = 0; i < done.size(); ++i) runs.push_back(run_of(outputs[i], done[i]));
  return runs;
}

std::optional<std::int64_t> Executable::temporary_bytes() const {
  if (!client_->plugin().has(kCompiledMemory)) return std::nullopt;
  Block<CompiledMemoryArgs> arguments;
  arguments->executable = executable_;
  try {
    client_->plugin().call(kCompiledMemory, arguments);
  } catch (const PluginError& error) {
    if (error.status() == kUnimplemented) return std::nullopt;
    throw;
  }
  return arguments->temporary_bytes;
}

void Executable::execute(ExecuteOptions* options, const Rows& rows, void* device) const {
  Block<ExecuteArgs> arguments;
  arguments->loaded = loaded_;
  arguments->options = options;
  arguments->arguments = rows.arguments.data();
  arguments->device_count = rows.arguments.size();
  arguments->argument_count = rows.argument_count;
  arguments->outputs = rows.outputs;
  arguments->done_events = rows.done_events;
  arguments->device = device;
  client_->plugin().call(kExecute, arguments);
}

LaunchedRun Executable::run_of(std::span<void* const> outputs, void* done) const {
  LaunchedRun run{.outputs = {}, .done = Event(client_, done)};
  run.outputs.reserve(outputs.size());
  for (void* const output : outputs) run.outputs.emplace_back(client_, output);
  return run;
}

}  // namespace weft::pjrt
