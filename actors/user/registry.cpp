#include "actors/user/registry.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "transport/actors/actor_table_format.hpp"

namespace weft {
namespace {

/// All classes that this copy of weft knows. Classes register in any order and on any thread,
/// because the classes of a library register when it is loaded.
struct Registry {
  std::mutex mutex;
  std::vector<const detail::ActorClass*> classes;
};

/// Returns the registry. It is never destroyed, because a class may be destroyed after it.
Registry& registry() {
  static auto* const made = new Registry;
  return *made;
}

}  // namespace

namespace detail {

ActorClass::ActorClass(std::string name, Parts parts, std::source_location where)
    : name_(std::move(name)), parts_(std::move(parts)), where_(where) {
  const std::lock_guard lock(registry().mutex);
  registry().classes.push_back(this);
}

ActorClass::~ActorClass() {
  const std::lock_guard lock(registry().mutex);
  std::erase(registry().classes, this);
}

std::string ActorClass::site() const {
  const std::string_view file = where_.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), where_.line());
}

}  // namespace detail

bool is_actor_name(std::string_view text) {
  return !text.empty() && text.size() <= kActorNameMax && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

const detail::ActorClass& find_actor_class(std::string_view name) {
  const std::lock_guard lock(registry().mutex);
  const detail::ActorClass* found = nullptr;
  std::vector<std::string> names;
  for (const detail::ActorClass* each : registry().classes) {
    names.push_back(each->name());
    if (each->name() != name) continue;
    if (found != nullptr) {
      fail(Errc::invalid_argument,
           "two actor types have the name \"{}\", at {} and at {}: give each its own name, because "
           "other processes find a type by its name",
           name, found->site(), each->site());
    }
    found = each;
  }
  if (found != nullptr) return *found;
  std::ranges::sort(names);
  fail(Errc::not_found,
       "there is no actor type \"{}\" in this process; it has: {}; define the ActorType as a "
       "variable "
       "of namespace scope that is linked into the executable, so that it exists in every process "
       "before main()",
       name, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

void require_usable(const detail::ActorClass& type) {
  if (!is_actor_name(type.name())) {
    fail(Errc::invalid_argument,
         "actor type \"{}\" ({}): expected a name of 1 to {} of the characters a-z A-Z 0-9 _ . -",
         type.name(), type.site(), kActorNameMax);
  }
  find_actor_class(type.name());
}

}  // namespace weft
