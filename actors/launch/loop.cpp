#include <weft/train/loop.hpp>

#include <algorithm>
#include <mutex>
#include <string_view>
#include <vector>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "actors/launch/worker_entry.hpp"
#include "actors/process/elf_object.hpp"

namespace weft {
namespace {

/// The list of all loops that this copy of weft knows, the newest first. Loops register in any
/// order before main(), and on any thread that loads a library. Therefore both variables are
/// initialized at compile time.
constinit Loop* first_loop = nullptr;
constinit std::mutex loops_mutex;

/// Returns a message of the JSON library without the error's name and number at its beginning.
std::string_view without_prefix(std::string_view what) {
  const std::size_t end = what.find("] ");
  return what.starts_with("[json.exception.") && end != std::string_view::npos
             ? what.substr(end + 2)
             : what;
}

}  // namespace

Loop::Loop(const char* name, Body body, LoopOptions options, std::source_location where)
    : name_(name),
      body_(body),
      options_(options),
      where_(where),
      is_late_(was_loaded_before_main(address())) {
  const std::lock_guard lock(loops_mutex);
  next_ = first_loop;
  first_loop = this;
}

Loop::~Loop() {
  const std::lock_guard lock(loops_mutex);
  for (Loop** at = &first_loop; *at != nullptr; at = &(*at)->next_) {
    if (*at != this) continue;
    *at = next_;
    return;
  }
}

std::string Loop::site() const {
  const std::string_view file = where_.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), where_.line());
}

void Loop::check(const Config& config) const {
  if (body_.check == nullptr) return;
  try {
    body_.check(config);
  } catch (const Error& e) {
    fail(e.code(), "loop \"{}\": {}", name_, e.what());
  } catch (const std::exception& e) {
    const bool is_given = !config.is_null() && config != Config::object();
    fail(Errc::invalid_argument, "loop \"{}\": loop_config {}: {}", name_,
         is_given ? "= " + config.dump(-1, ' ', false, Config::error_handler_t::replace)
                  : "isn't given, but the loop's config has keys without a default",
         without_prefix(e.what()));
  }
}

void Loop::require_known_keys(const Config& given, const Config& taken) {
  if (!given.is_object() || !taken.is_object()) return;
  for (const auto& [key, value] : given.items()) {
    if (taken.contains(key)) continue;
    std::vector<std::string> known;
    for (const auto& item : taken.items()) known.push_back(item.key());
    fail(Errc::invalid_argument, "loop_config has \"{}\", which its type doesn't have; it has: {}",
         key, fmt::join(known, ", "));
  }
}

void Loop::require_findable() const {
  if (!object_of(address())) {
    fail(Errc::invalid_argument,
         "loop \"{}\" ({}) is a local variable, or was made by new: a worker process makes "
         "only variables of namespace scope and calls none of your functions; move the loop "
         "out of its function",
         name_, site());
  }
  if (is_late_) {
    fail(Errc::invalid_argument,
         "loop \"{}\" ({}) was made after main() had begun: a worker process makes only "
         "variables of namespace scope and calls none of your functions; move the loop out of "
         "its function",
         name_, site());
  }
  find(name_);
}

const Loop* Loop::find(const std::string& name) {
  const std::lock_guard lock(loops_mutex);
  const Loop* found = nullptr;
  for (const Loop* loop = first_loop; loop != nullptr; loop = loop->next_) {
    if (name != loop->name_) continue;
    if (found != nullptr) {
      fail(Errc::invalid_argument,
           "two loops have the name \"{}\", at {} and at {}: give each loop its own name, "
           "because workers find a loop by its name",
           name, loop->site(), found->site());
    }
    found = loop;
  }
  return found;
}

std::string Loop::names() {
  const std::lock_guard lock(loops_mutex);
  std::vector<std::string> names;
  for (const Loop* loop = first_loop; loop != nullptr; loop = loop->next_) {
    names.emplace_back(loop->name_);
  }
  std::ranges::sort(names);
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace weft
