#include "spmd/program/custom_function.hpp"

#include <atomic>
#include <exception>
#include <memory>
#include <utility>

namespace weft {
namespace {

/// An entry of a linked list to which entries are only added, at the head. Storing a new head
/// publishes the entry to all threads.
struct Entry {
  CustomFunction function;
  const Entry* next = nullptr;
};
std::atomic<const Entry*> last_registered{nullptr};

const CustomFunction* find_by_name(const Entry* entry, std::string_view name) {
  while (entry != nullptr && entry->function.target.name != name) entry = entry->next;
  return entry == nullptr ? nullptr : &entry->function;
}

std::string at(std::string_view loc) { return loc.empty() ? "" : fmt::format(" at {}", loc); }

}  // namespace

std::size_t CustomCall::checked(std::size_t i) const {
  if (i >= num_operands()) {
    fail(Errc::invalid_argument, "operand {} is read, but there are {} operands, counted from 0", i,
         num_operands());
  }
  return i;
}

void CustomCall::refuse(const TensorType& type, DType dtype, std::string_view what, std::size_t i) {
  const std::string number = what == "operand" ? fmt::format(" {}", i) : "";
  fail(Errc::invalid_argument,
       "{}{} is {}, but the kernel reads it as {}: cast() the operand before the call, or make the "
       "kernel check the dtype",
       what, number, type.to_string(), to_string(dtype));
}

const CustomFunction& register_custom_function(const CustomFunction& function) {
  auto entry = std::make_unique<Entry>(Entry{function});
  entry->next = last_registered.load(std::memory_order_acquire);
  for (;;) {
    if (const CustomFunction* known = find_by_name(entry->next, function.target.name)) {
      if (known->target.rule != function.target.rule) {
        fail(Errc::invalid_argument,
             "name: '{}' is already registered with the sharding_rule \"{}\", but is now given "
             "with \"{}\"; give one of the two ops another name",
             function.target.name, known->target.rule, function.target.rule);
      }
      if (known->kernel != function.kernel || known->vjp != function.vjp) {
        fail(Errc::invalid_argument,
             "name: '{}' is already registered with another {}; give one of the two ops another "
             "name, or declare the op inline if it is in a header",
             function.target.name, known->kernel != function.kernel ? "kernel" : "vjp");
      }
      return *known;
    }
    if (last_registered.compare_exchange_weak(entry->next, entry.get(),
                                              std::memory_order_acq_rel)) {
      return entry.release()->function;
    }
  }
}

const CustomFunction* find_custom_function(const CustomTarget& target) {
  const CustomFunction* found =
      find_by_name(last_registered.load(std::memory_order_acquire), target.name);
  return found != nullptr && found->target == target ? found : nullptr;
}

BoundCustomCall::BoundCustomCall(const Program& program, OpId op) : loc_(program.loc(op)) {
  const CustomTarget& target = program.custom_target(op);
  function_ = find_custom_function(target);
  if (function_ == nullptr) {
    fail(Errc::not_found,
         "custom_call '{}'{}: this process has no op of that name with the sharding_rule \"{}\"; "
         "trace a call of it first",
         target.name, at(loc_), target.rule);
  }
  for (const ValueId operand : program.op_operands(op)) types_.push_back(program.type(operand));
  types_.push_back(program.type(program.result(op)));
}

void BoundCustomCall::run(std::span<const std::byte* const> operands, std::byte* result) const {
  const auto what = [&] {
    return fmt::format("custom_call '{}'{}", function_->target.name, at(loc_));
  };
  // Throws an exception that nests the kernel's, which says more about the cause.
  const auto fail_with = [&](Errc code, std::string_view how) {
    std::throw_with_nested(Error(code, fmt::format("{}: {}", what(), how)));
  };
  try {
    function_->kernel(CustomCall(types_, operands.first(types_.size() - 1), result));
  } catch (const Error& error) {
    fail_with(error.code(), error.what());
  } catch (const std::exception& error) {
    fail_with(Errc::loop_failed, fmt::format("the kernel threw: {}", error.what()));
  } catch (...) {
    fail_with(Errc::loop_failed, "the kernel threw something that isn't a std::exception");
  }
}

}  // namespace weft
