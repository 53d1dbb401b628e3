#pragma once
/// Parameters: lets any program of the user read the versions of tensors that a running job
/// publishes (Publisher).
///
///   weft::Parameters policy(job_id, "policy");         // in an actor: ctx.parameters("policy")
///   const weft::ParameterView view = policy.newest();  // its tensors don't change
///   std::span<const float> weight = view.get<float>("a.weight", {64, 4});

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weft/tensor/dlpack.hpp>
#include <weft/tensor/element.hpp>
#include <weft/tensor/type.hpp>

namespace weft {

class ActorContext;
class JobHost;
class VersionSource;

/// One version of published tensors, in shared memory. The tensors don't change while any process
/// has a view of this version. Each name has room for eight versions, so don't keep many views for
/// long. Copies of a view are cheap and also keep the version. Any thread may use a view; it can't
/// be passed to another process.
class ParameterView {
 public:
  ParameterView() = default;  ///< an empty view, which has no tensors
  ParameterView(const ParameterView& other);
  ParameterView(ParameterView&& other) noexcept
      : reader_(std::move(other.reader_)), version_(other.version_), place_(other.place_) {}
  ParameterView& operator=(ParameterView other) noexcept {
    std::swap(reader_, other.reader_);
    std::swap(version_, other.version_);
    std::swap(place_, other.place_);
    return *this;
  }
  ~ParameterView();

  explicit operator bool() const { return reader_ != nullptr; }
  /// Returns the version: the number of steps that had ended when the loop had these values.
  std::uint64_t version() const { return version_; }

  /// Returns the elements of a tensor, row-major, without a copy. They are valid while a view of
  /// the version exists. Throws not_found, with the names of all tensors, or invalid_argument if T
  /// isn't the C++ type of the tensor's dtype or `shape` isn't its shape.
  template <ChipElement T>
  std::span<const T> get(std::string_view name) const {
    return elements<T>(find(name, *dtype_of<T>(), nullptr));
  }
  template <ChipElement T>
  std::span<const T> get(std::string_view name, const Shape& shape) const {
    return elements<T>(find(name, *dtype_of<T>(), &shape));
  }
  /// Returns a tensor without a copy; it keeps the version as a view does. Throws not_found.
  HostTensor tensor(std::string_view name) const;
  /// Returns the names of all tensors, in the order in which Publisher got them.
  std::vector<std::string> names() const;

 private:
  friend class Parameters;
  friend class Session;
  /// The caller has already counted the new view among the users of the version.
  ParameterView(std::shared_ptr<VersionSource> reader, std::uint64_t version, std::uint32_t place)
      : reader_(std::move(reader)), version_(version), place_(place) {}
  std::span<const std::byte> find(std::string_view name, DType dtype, const Shape* shape) const;
  template <typename T>
  static std::span<const T> elements(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  std::shared_ptr<VersionSource> reader_;
  std::uint64_t version_ = 0;
  std::uint32_t place_ = 0;
};

struct ParametersOptions {
  double timeout_s = 30;   ///< seconds; the longest wait for a version
  std::stop_token stop{};  ///< a stop request ends waits with the error cancelled
};

/// Reads what a job publishes under a name. Copies are cheap. Thread-safe. The connection to the
/// job is made at the first use, so the job may still be starting when this object is made.
class Parameters {
 public:
  /// `job` is the id of a job of this user on this host (JobInfo::id). Throws invalid_argument if
  /// `job` can't be an id, or `name` is malformed.
  Parameters(std::string_view job, std::string_view name, ParametersOptions options = {});

  /// Returns the newest version, or the job's last version if the job has ended. Waits if there is
  /// no version yet. The wait throws timeout; cancelled, if a stop was requested; unavailable if
  /// the job ends first; not_found if there is no such job; and invalid_argument on a thread that
  /// several actors share. All functions of this class throw no_space if 256 processes read this
  /// name.
  ParameterView newest() const;
  /// Waits until the newest version is `version` or later, and returns the newest. Throws as
  /// newest() does.
  ParameterView at_least(std::uint64_t version) const;
  /// Returns the number of the newest version without making a view; std::nullopt if there is none
  /// yet.
  std::optional<std::uint64_t> version() const;
  /// Returns how many versions weren't published because views kept all places; 0 before the first
  /// version.
  std::uint64_t skipped() const;
  /// Returns whether the job has ended, so that no further version will come. Takes some
  /// microseconds.
  bool has_ended() const;

 private:
  friend class ActorContext;
  struct Source;
  Parameters(std::string_view job, std::string_view name, ParametersOptions options,
             std::shared_ptr<JobHost> host);
  std::shared_ptr<Source> source_;
};

}  // namespace weft
