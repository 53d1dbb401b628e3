#pragma once
/// Parameters: the versions of tensors that a running job publishes (Publisher), as any program of
/// the user reads them.
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

/// One version of published tensors, in shared memory. While a view of it exists in any process,
/// its bytes don't change. A version that is held for long takes one of the eight places that a
/// name has. Copies hold it too, and are cheap. Any thread may use a view; a view isn't passed to
/// another process.
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
  /// Returns the number of steps after which the loop had these values.
  std::uint64_t version() const { return version_; }

  /// Returns the elements of a tensor, row-major, without a copy. They are valid while a view of
  /// the version exists. Throws not_found with all names, or invalid_argument if T isn't the C++
  /// type of its dtype, or `shape` isn't its shape.
  template <ChipElement T>
  std::span<const T> get(std::string_view name) const {
    return elements<T>(find(name, *dtype_of<T>(), nullptr));
  }
  template <ChipElement T>
  std::span<const T> get(std::string_view name, const Shape& shape) const {
    return elements<T>(find(name, *dtype_of<T>(), &shape));
  }
  /// Returns a tensor whose owner holds the version, without a copy. Throws not_found.
  HostTensor tensor(std::string_view name) const;
  /// Returns the names of all tensors, in the order of Publisher's list.
  std::vector<std::string> names() const;

 private:
  friend class Parameters;
  friend class Session;
  /// The new view takes over a hold of the place.
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
  double timeout_s = 30;   ///< the longest wait for a version
  std::stop_token stop{};  ///< ends a wait with the error cancelled
};

/// Reads what the job publishes under a name. Copies are cheap. Thread-safe. The first use opens
/// it, so the job may still be starting when the object is made.
class Parameters {
 public:
  /// `job` is the id of a job of this user on this host (JobInfo::id). Throws invalid_argument for
  /// text that is no job id, or a name that can't be.
  Parameters(std::string_view job, std::string_view name, ParametersOptions options = {});

  /// Returns the newest version, after the end of the job its last one. Waits for the first version
  /// if there is none yet. The wait throws timeout; cancelled, if a stop was requested; unavailable
  /// if the job ends before; not_found if there is no such job; and invalid_argument on a thread
  /// that several actors share. All calls throw no_space if 256 processes read this name.
  ParameterView newest() const;
  /// Waits until the newest version is `version` or later, and returns it. Throws as newest().
  ParameterView at_least(std::uint64_t version) const;
  /// Returns the number of the newest version, without holding it; nothing if there is none yet.
  std::optional<std::uint64_t> version() const;
  /// Returns how many versions weren't published because views held all places; 0 if nothing has
  /// been published yet.
  std::uint64_t skipped() const;
  /// Returns whether the job has ended, so that there will be no further version. Takes some
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
