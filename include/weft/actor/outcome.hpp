#pragma once
/// Outcome: a value, or the error that prevented it.

#include <optional>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {

template <typename R>
class Outcome {
 public:
  Outcome(R value) : value_(std::move(value)) {}
  Outcome(Error error) : error_(std::move(error)) {}

  bool ok() const { return value_.has_value(); }
  /// Returns the value. Throws the error if there is no value.
  const R& value() const& {
    if (error_) throw *error_;
    return *value_;
  }
  R&& value() && {
    if (error_) throw *error_;
    return std::move(*value_);
  }
  /// Returns the error. Call it only if there is no value.
  const Error& error() const { return *error_; }

 private:
  std::optional<R> value_;
  std::optional<Error> error_;
};

template <>
class Outcome<void> {
 public:
  Outcome() = default;
  Outcome(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_; }
  void value() const {
    if (error_) throw *error_;
  }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace weft
