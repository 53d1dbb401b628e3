#include "tests/support/fake_pjrt/fake_run.hpp"

#include <algorithm>
#include <cmath>

#include "tests/support/fake_pjrt/fake_objects.hpp"

namespace weft::testing {

using namespace pjrt;

namespace {

void* compiled(const std::string& text, std::string_view option_bytes) {
  auto executable = std::make_unique<FakeExecutable>();
  try {
    executable->text = text;
    executable->signature = parse_signature(text);
    executable->options = parse_options(option_bytes);
  } catch (const std::invalid_argument& error) {
    throw FakeError(kUnknown, error.what());
  }
  // Real plug-ins abort the process if they get such options.
  if (executable->options.replicas == 0)
    state().objects.misuse("options without a number of replicas");
  for (const auto& [flag, value] : executable->options.flags) {
    if (state().plugin.known_flags.contains(flag)) continue;
    throw FakeError(kInvalidArgument, "No such compile option: '" + flag + "'");
  }
  return state().objects.add(std::move(executable));
}

std::size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::pred:
    case ElementType::s8:
    case ElementType::u8: return 1;
    case ElementType::s16:
    case ElementType::u16:
    case ElementType::f16:
    case ElementType::bf16: return 2;
    case ElementType::s32:
    case ElementType::u32:
    case ElementType::f32: return 4;
    case ElementType::s64:
    case ElementType::u64:
    case ElementType::f64: return 8;
  }
  throw FakeError(kInvalidArgument, "an unknown type of elements");
}

constexpr std::string_view kSerialized = "weft fake executable\n";

FakeBuffer& readable(void* handle) {
  auto& buffer = state().objects.get<FakeBuffer>(handle, "buffer");
  if (buffer.is_taken) state().objects.misuse("Buffer has been deleted or donated.");
  return buffer;
}

/// Returns a buffer for result `k`: it has the memory of an argument that the result may overwrite,
/// or new memory.
std::unique_ptr<FakeBuffer> place_result(const FakeExecutable& executable, std::size_t k,
                                         std::span<FakeBuffer* const> arguments,
                                         std::span<const std::int64_t> kept_inputs) {
  auto result = std::make_unique<FakeBuffer>();
  for (std::size_t i = 0; i < arguments.size() && !state().plugin.copies_results; ++i) {
    const bool is_kept = std::ranges::count(kept_inputs, static_cast<std::int64_t>(i)) != 0;
    if (executable.signature.arguments[i].result != k || is_kept) continue;
    arguments[i]->is_taken = true;
    result->own = std::move(arguments[i]->own);
    result->bytes = arguments[i]->bytes;
    return result;
  }
  result->own.resize(executable.signature.results[k].bytes);
  result->bytes = result->own;
  return result;
}

/// Returns the bytes that a run reads for an argument. With `keeps_weights`, these are the bytes
/// that were at the address when a run first read it.
std::span<std::byte> seen(const FakeExecutable& executable, std::span<std::byte> bytes) {
  const bool is_cured =
      state().plugin.flags_cure && executable.options.flags.contains("xla_cpu_use_xnnpack");
  if (!state().plugin.keeps_weights || is_cured) return bytes;
  return state().kept.try_emplace(bytes.data(), bytes.begin(), bytes.end()).first->second;
}

std::function<void()> run_of(const FakeExecutable& executable,
                             std::span<FakeBuffer* const> arguments,
                             std::span<FakeBuffer* const> results, std::size_t replica) {
  const auto module = state().plugin.modules.find(executable.signature.name);
  if (module == state().plugin.modules.end()) {
    throw FakeError(kUnimplemented,
                    "no test has said what this module computes: " + executable.signature.name);
  }
  FakeRun run;
  run.replica = replica;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    run.arguments.push_back(
        {executable.signature.arguments[i].type.text, seen(executable, arguments[i]->bytes)});
  }
  for (std::size_t k = 0; k < results.size(); ++k) {
    run.results.push_back({executable.signature.results[k].text, results[k]->bytes});
  }
  for (const auto& [flag, value] : executable.options.flags) {
    if (!value) run.false_flags.insert(flag);
  }
  return [run, compute = module->second] { compute(run); };
}

void product(const FakeRun& run) {
  // All elements of an operand of the self-test are equal, so all elements of the product are
  // equal.
  const std::span<float> x = run.arguments[0].floats();
  const std::span<float> w = run.arguments[1].floats();
  constexpr std::size_t kDepth = 784, kColumns = 1024;
  float sum = 0;
  for (std::size_t i = 0; i < kDepth; ++i) sum += x[i] * w[i * kColumns];
  std::ranges::fill(run.results[0].floats(), sum);
}

void doubled(const FakeRun& run) {
  std::ranges::transform(run.arguments[0].floats(), run.results[0].floats().begin(),
                         [](float x) { return x + x; });
}

void maximum(const FakeRun& run) {
  const bool is_cured =
      state().plugin.flags_cure && run.false_flags.contains("xla_cpu_enable_fast_min_max");
  for (std::size_t i = 0; i < 2; ++i) {
    const float x = run.arguments[0].floats()[i];
    const float y = run.arguments[1].floats()[i];
    const bool is_lost = state().plugin.loses_nan && !is_cured;
    const float nan = std::isnan(x) ? x : y;
    run.results[0].floats()[i] = std::isnan(x + y) && !is_lost ? nan : std::fmax(x, y);
    run.results[1].floats()[i] = std::isnan(x + y) && !is_lost ? nan : std::fmin(x, y);
  }
}

}  // namespace

void compile(CompileArgs& args) {
  args.loaded =
      compiled({args.program->code, args.program->size}, {args.options, args.options_size});
  ++state().plugin.compilations;
}

void get_executable(GetExecutableArgs& args) {
  const auto& loaded = state().objects.get<FakeExecutable>(args.loaded, "executable");
  args.executable = state().objects.add(std::make_unique<FakeExecutable>(loaded));
}

void num_outputs(CountArgs& args) {
  args.count =
      state().objects.get<FakeExecutable>(args.executable, "executable").signature.results.size();
}

void serialize(SerializeArgs& args) {
  const auto& executable = state().objects.get<FakeExecutable>(args.executable, "executable");
  auto* const bytes = new std::string(std::string(kSerialized) + executable.text);
  args.bytes = bytes->data();
  args.size = bytes->size();
  args.owner = bytes;
  args.free = [](void* owner) { delete static_cast<std::string*>(owner); };
}

void deserialize(DeserializeArgs& args) {
  const std::string_view bytes(args.bytes, args.size);
  if (!bytes.starts_with(kSerialized)) throw FakeError(13, "these bytes aren't an executable");
  const std::string one_replica{0x1A, 2, 0x20, 1};
  args.loaded = compiled(std::string(bytes.substr(kSerialized.size())), one_replica);
}

void from_host(FromHostArgs& args) {
  std::size_t bytes = element_bytes(args.type);
  for (const std::int64_t dim : std::span(args.dims, args.rank)) {
    bytes *= static_cast<std::size_t>(dim);
  }
  auto buffer = std::make_unique<FakeBuffer>();
  // Like real plug-ins, this function copies memory that isn't aligned without an error.
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(args.data) % 64 == 0;
  if (args.semantics == HostMemory::used_in_place && is_aligned) {
    buffer->bytes = {static_cast<std::byte*>(const_cast<void*>(args.data)), bytes};
  } else {
    buffer->own.assign(static_cast<const std::byte*>(args.data),
                       static_cast<const std::byte*>(args.data) + bytes);
    buffer->bytes = buffer->own;
  }
  args.buffer = state().objects.add(std::move(buffer));
  args.done_event = new_event(true);
}

void to_host(ToHostArgs& args) {
  const FakeBuffer& buffer = readable(args.buffer);
  if (args.to == nullptr) {
    args.size = buffer.bytes.size();
    return;
  }
  if (args.size < buffer.bytes.size()) state().objects.misuse("the host's memory is too small");
  if (args.layout != nullptr && args.layout->tile_count != 0) {
    state().objects.misuse("the host's layout has tiles");
  }
  state().plugin.bytes_to_host += buffer.bytes.size();
  const bool is_held = state().plugin.holds_copies;
  args.event = new_event(!is_held);
  auto* const to = static_cast<std::byte*>(args.to);
  if (!is_held) {
    std::ranges::copy(buffer.bytes, to);
    return;
  }
  const std::vector<std::byte> bytes(buffer.bytes.begin(), buffer.bytes.end());
  state().held.emplace_back([bytes, to] { std::ranges::copy(bytes, to); }, args.event);
}

void unsafe_pointer(AddressArgs& args) {
  args.address = reinterpret_cast<std::uintptr_t>(readable(args.buffer).bytes.data());
}

namespace {

/// Runs a program on one of the devices of a launch.
void execute_on(const FakeExecutable& executable, const ExecuteArgs& args, std::size_t replica) {
  const auto& expected = executable.signature.arguments;
  std::vector<FakeBuffer*> arguments;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    arguments.push_back(&readable(args.arguments[replica][i]));
    if (arguments.back()->bytes.size() != expected[i].type.bytes) {
      throw FakeError(kInvalidArgument, "argument " + std::to_string(i) + " has another size");
    }
  }
  std::vector<FakeBuffer*> results;
  const std::span kept_inputs(args.options->kept_inputs, args.options->kept_count);
  for (std::size_t k = 0; k < executable.signature.results.size(); ++k) {
    results.push_back(state().objects.add(place_result(executable, k, arguments, kept_inputs)));
    args.outputs[replica][k] = results.back();
  }
  std::function<void()> run = run_of(executable, arguments, results, replica);
  args.done_events[replica] = new_event(!state().plugin.holds_runs);
  if (state().plugin.holds_runs) {
    state().held.emplace_back(std::move(run), args.done_events[replica]);
  } else {
    run();
  }
}

}  // namespace

void execute(ExecuteArgs& args) {
  const auto& executable = state().objects.get<FakeExecutable>(args.loaded, "executable");
  const std::size_t expected = executable.signature.arguments.size();
  if (args.device_count != executable.options.replicas || args.argument_count != expected) {
    throw FakeError(kInvalidArgument, "Execution supplied " + std::to_string(args.argument_count) +
                                          " arguments but compiled program expected " +
                                          std::to_string(expected));
  }
  for (std::size_t i = 0; i < args.device_count; ++i) execute_on(executable, args, i);
}

void add_self_test() {
  state().plugin.modules = {{"weft_self_test_product", product},
                            {"weft_self_test_place", doubled},
                            {"weft_self_test_nan", maximum}};
}

}  // namespace weft::testing
