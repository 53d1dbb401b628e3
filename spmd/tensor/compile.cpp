#include <weft/tensor/compile.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <unordered_map>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// Says where to find a result of a traced function when its program runs again.
struct ResultSource {
  enum Kind { output, argument, held } kind = output;
  std::size_t index = 0;  // index in the program's outputs or in the arguments
  NodePtr node;           // for `held`: a parameter, or a tensor that existed before the call
  std::shared_ptr<const GradientOf> gradient{};  // for `output`
};

/// An argument that the program reads.
struct ArgumentUse {
  std::size_t input;
  std::size_t argument;
  std::optional<std::size_t> output;  ///< number of the output that updates the argument
};

struct Traced {
  TracedProgram program;
  std::vector<ArgumentUse> arguments;
  std::vector<ResultSource> results;
  bool complete = false;  // one program computed all results of the call

  /// Returns whether the tensors of the program's state have the same names as in the traced call.
  /// They don't in an AverageScope, which exchanges the names of parameters and their averages.
  bool has_its_state() const {
    const auto& nodes = program.inputs;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i] != nullptr && nodes[i]->is_state() &&
          nodes[i]->name != program.program.inputs[i].name) {
        return false;
      }
    }
    return true;
  }

  /// Drops references to arguments and results, so that these aren't kept alive between calls.
  void release() {
    for (const ArgumentUse& use : arguments) {
      program.inputs[use.input] = nullptr;
      if (use.output) program.outputs[*use.output] = nullptr;
    }
    for (const ResultSource& source : results) {
      if (source.kind == ResultSource::output) program.outputs[source.index] = nullptr;
    }
  }
};

void append_bits(std::string& key, const void* bytes, std::size_t size) {
  key.append(static_cast<const char*>(bytes), size);
}

/// Returns a key that identifies the parameter to which a gradient belongs.
std::string gradient_key(const TensorNode& node) {
  if (node.gradient == nullptr) return "";
  const auto parameter = node.gradient->parameter.lock();
  return fmt::format("{}{}", fmt::ptr(parameter.get()), node.gradient->is_used ? "" : " unused");
}

/// Returns all properties of the arguments on which the function's program depends, as text.
std::string signature(const std::vector<Tensor>& args, std::string key) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const NodePtr& node = node_of(args[i]);
    const auto first = std::ranges::find(args, node, &Tensor::node) - args.begin();
    const Sharding sharding = node->input_sharding();
    key += fmt::format("{} {} {} {:x} {:x} {:x} {} {};", first, static_cast<int>(node->kind),
                       node->type.to_string(), sharding.provenance, sharding.replicated,
                       sharding.open_mask, node->has_ignored, gradient_key(*node));
    append_bits(key, sharding.dims.data(), sizeof(sharding.dims));
  }
  return key;
}

/// Marks a function as being traced. If the function throws, drops the ops that it has recorded.
class TracingScope {
 public:
  TracingScope(Trace& trace, const TracedFunction& scope) : trace_(trace) {
    trace.function() = scope;
  }
  ~TracingScope() {
    trace_.function().reset();
    if (std::uncaught_exceptions() > exceptions_) trace_.discard();
  }
  TracingScope(const TracingScope&) = delete;
  TracingScope& operator=(const TracingScope&) = delete;

 private:
  Trace& trace_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace

struct CompiledFunction::Impl {
  CompileOptions options;
  std::source_location loc;
  std::uint64_t trace_id = 0;  // id of the trace whose runtime has the programs
  std::unordered_map<std::string, Traced> by_signature;
  const Traced* last = nullptr;  // the last call's entry, except for calls in other functions

  /// `is_own` is true for a run of the function's ops, and false for a run of ops recorded before
  /// the call.
  RunSite site(bool is_own) const {
    return {"compile", loc, options.max_programs, is_own && options.ends_step};
  }

  std::vector<Tensor> trace_call(Trace& trace, const std::vector<Tensor>& args, Traced& entry,
                                 const std::function<std::vector<Tensor>()>& traced) const;
  std::vector<Tensor> run_again(Trace& trace, const std::vector<Tensor>& args, Traced& entry) const;
};

CompiledFunction::CompiledFunction(const CompileOptions& options, const std::source_location& loc)
    : impl_(std::make_unique<Impl>()) {
  if (options.max_programs < 0) {
    fail(Errc::invalid_argument,
         "compile: max_programs = {}: expected 0 (any number) or more (at {})",
         options.max_programs, file_line(loc));
  }
  impl_->options = options;
  impl_->loc = loc;
}

CompiledFunction::~CompiledFunction() = default;

std::vector<Tensor> CompiledFunction::call(const std::vector<Tensor>& args,
                                           const std::string& host_values,
                                           const std::function<std::vector<Tensor>()>& traced) {
  Trace& trace = Trace::current(impl_->loc);
  if (trace.function()) return traced();  // this call becomes part of the outer function
  if (trace.modes().is_eager) {
    std::vector<Tensor> results = traced();
    if (impl_->options.ends_step) trace.end_step();
    return results;
  }
  trace.run(impl_->site(false));  // runs the ops recorded before the call
  if (impl_->trace_id != trace.id()) {
    impl_->trace_id = trace.id();
    impl_->by_signature.clear();
    impl_->last = nullptr;
  }
  const std::string autocast =
      trace.modes().autocast ? std::string(to_string(*trace.modes().autocast)) : "";
  std::string key = signature(args, autocast + ";" + host_values);
  while (!impl_->by_signature[key].has_its_state()) key += "exchanged;";
  Traced& entry = impl_->by_signature[key];
  impl_->last = &entry;
  std::vector<Tensor> results = entry.complete ? impl_->run_again(trace, args, entry)
                                               : impl_->trace_call(trace, args, entry, traced);
  if (impl_->options.ends_step) trace.end_step();
  return results;
}

const Program& CompiledFunction::last_program(const std::source_location& loc) const {
  const bool is_of_loop = impl_->trace_id == Trace::current(loc).id();
  if (!is_of_loop || impl_->last == nullptr) {
    fail(Errc::invalid_argument,
         "the function compiled at {} hasn't been called in this loop, so it has no program; call "
         "it first, outside of DebugMode::eager (at {})",
         file_line(impl_->loc), file_line(loc));
  }
  if (!impl_->last->complete) {
    fail(Errc::invalid_argument,
         "the function compiled at {} needed more than one program, because it reads a value while "
         "it runs, as item() does; compile the parts before and after the read as two functions "
         "(at {})",
         file_line(impl_->loc), file_line(loc));
  }
  return impl_->last->program.program;
}

std::vector<Tensor> CompiledFunction::Impl::trace_call(
    Trace& trace, const std::vector<Tensor>& args, Traced& entry,
    const std::function<std::vector<Tensor>()>& traced) const {
  const TracingScope scope(trace, {.loc = loc, .full_graph = options.full_graph});
  const std::uint64_t runs = trace.run_count();
  std::vector<Tensor> results = traced();
  for (const Tensor& result : results) node_of(result, loc);
  const bool complete = trace.run_count() == runs;
  entry.program = trace.run_function(site(true), results);
  entry.arguments.clear();
  entry.results.clear();
  const auto argument = [&](const NodePtr& node) {
    return static_cast<std::size_t>(std::ranges::find(args, node, &Tensor::node) - args.begin());
  };
  const auto& inputs = entry.program.inputs;
  const auto& outputs = entry.program.outputs;
  for (const Tensor& result : results) {
    const NodePtr& node = result.node();
    const auto output = std::ranges::find(outputs, node);
    if (output != outputs.end() && node->input == kNoId) {
      entry.results.push_back({ResultSource::output,
                               static_cast<std::size_t>(output - outputs.begin()), nullptr,
                               node->gradient});
    } else if (const std::size_t arg = argument(node); arg < args.size()) {
      entry.results.push_back({ResultSource::argument, arg, nullptr});
    } else {
      entry.results.push_back({ResultSource::held, 0, node});
    }
  }
  for (std::size_t input = 0; input < inputs.size(); ++input) {
    const std::size_t arg = argument(inputs[input]);
    if (arg == args.size()) continue;
    ArgumentUse& use = entry.arguments.emplace_back(ArgumentUse{input, arg, {}});
    const auto output = std::ranges::find(outputs, inputs[input]);
    if (output != outputs.end()) use.output = static_cast<std::size_t>(output - outputs.begin());
  }
  entry.release();
  entry.complete = complete;
  return results;
}

std::vector<Tensor> CompiledFunction::Impl::run_again(Trace& trace, const std::vector<Tensor>& args,
                                                      Traced& entry) const {
  auto& [program, key, inputs, outputs, random_state, random_calls] = entry.program;
  for (const ArgumentUse& use : entry.arguments) {
    inputs[use.input] = args[use.argument].node();
    if (use.output) outputs[*use.output] = args[use.argument].node();
  }
  std::vector<Tensor> results;
  for (const ResultSource& source : entry.results) {
    switch (source.kind) {
      case ResultSource::output: {
        NodePtr& node = outputs[source.index];
        if (node == nullptr) {
          node = std::make_shared<TensorNode>();
          node->type = program.type(program.outputs[source.index].value);
          node->gradient = source.gradient;
        }
        results.emplace_back(node);
        break;
      }
      case ResultSource::argument: results.push_back(args[source.index]); break;
      case ResultSource::held: results.emplace_back(source.node); break;
    }
  }
  trace.run_again(entry.program, site(true));
  entry.release();
  return results;
}

StepScope::StepScope(std::source_location loc)
    : loc_(loc), exceptions_(std::uncaught_exceptions()) {
  Trace::current(loc).run({"StepScope", loc});
}

StepScope::~StepScope() noexcept(false) {
  if (std::uncaught_exceptions() == exceptions_) sync(loc_);
}

void add_step_closure(std::function<void()> function, std::source_location loc) {
  Call call("add_step_closure", loc);
  if (const auto& scope = call.trace().function()) {
    call.refuse(
        "the function compiled at {} runs only when it is recorded, not in every step; return the "
        "tensors from it, and add the closure after the call",
        file_line(scope->loc));
  }
  call.trace().closures().add(std::move(function));
}

}  // namespace weft
