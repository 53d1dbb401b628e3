#pragma once
/// The objects of the fake plug-in. The plug-in's handles point to them.

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "tests/support/fake_pjrt/fake_module.hpp"
#include "tests/support/fake_pjrt/fake_pjrt.hpp"

namespace weft::testing {

/// An error of the plug-in, with a status code of absl.
struct FakeError : std::runtime_error {
  FakeError(int status, const std::string& words) : std::runtime_error(words), code(status) {}
  int code;
};
inline constexpr int kUnknown = 2;
inline constexpr int kInvalidArgument = 3;
inline constexpr int kUnimplemented = 12;

struct FakeObject {
  virtual ~FakeObject() = default;
};
struct FakeDevice {
  int id;
};
struct FakeClient : FakeObject {
  std::vector<FakeDevice> devices{};
  std::vector<void*> handles{};
};
struct FakeEvent : FakeObject {
  bool is_ready = true;
};
struct FakeBuffer : FakeObject {
  std::vector<std::byte> own{};  ///< empty if the host's memory is used in place
  std::span<std::byte> bytes{};
  bool is_taken = false;  ///< a run has taken this buffer's memory for a result
};
struct FakeExecutable : FakeObject {
  std::string text{};
  FakeSignature signature{};
  FakeOptions options{};
};

/// All objects that haven't been destroyed. A handle is the address of its object.
class FakeObjects {
 public:
  explicit FakeObjects(FakePlugin& plugin) : plugin_(plugin) {}

  template <typename Object>
  Object* add(std::unique_ptr<Object> object) {
    Object* const handle = object.get();
    objects_[handle] = std::move(object);
    plugin_.live_objects = objects_.size();
    return handle;
  }
  /// Returns the object with this handle, or null if there is none of this type.
  template <typename Object>
  Object* find(void* handle) {
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : dynamic_cast<Object*>(&*found->second);
  }
  /// Returns the object with this handle. If there is none of this type, records a misuse and
  /// throws.
  template <typename Object>
  Object& get(void* handle, const char* what) {
    Object* const object = find<Object>(handle);
    if (object == nullptr) misuse(std::string("it isn't a living ") + what);
    return *object;
  }
  template <typename Object>
  void destroy(void* handle, const char* what) {
    get<Object>(handle, what);
    objects_.erase(handle);
    plugin_.live_objects = objects_.size();
  }
  [[noreturn]] void misuse(const std::string& text) {
    plugin_.misuses.push_back(text);
    throw FakeError(kInvalidArgument, text);
  }

 private:
  FakePlugin& plugin_;
  std::map<void*, std::unique_ptr<FakeObject>> objects_{};
};

/// The complete state of the plug-in, which `mutex` guards.
struct FakeState {
  std::mutex mutex{};
  std::condition_variable changed{};
  FakePlugin plugin{};
  FakeObjects objects{plugin};
  /// The held runs and copies, each with the event of its end. release() does them.
  std::vector<std::pair<std::function<void()>, void*>> held{};
  /// With `keeps_weights`: the bytes that runs read instead of an argument, by its address.
  std::map<const std::byte*, std::vector<std::byte>> kept{};
};
FakeState& state();

inline void* new_event(bool is_ready) {
  auto event = std::make_unique<FakeEvent>();
  event->is_ready = is_ready;
  return state().objects.add(std::move(event));
}

}  // namespace weft::testing
