#pragma once
/// Conversion of weft's errors to CAF's and back.

#include <optional>
#include <string>

#include <caf/all.hpp>

#include <weft/tensor/error.hpp>

namespace weft {

/// Returns an error of CAF with the text "peer_lost: ...". Its code is caf::sec::request_timeout
/// for the error timeout, request_receiver_down for peer_lost and actor_failed, else runtime_error.
inline caf::error to_caf(const Error& error) {
  const caf::sec code = error.code() == Errc::timeout ? caf::sec::request_timeout
                        : error.code() == Errc::peer_lost || error.code() == Errc::actor_failed
                            ? caf::sec::request_receiver_down
                            : caf::sec::runtime_error;
  return caf::make_error(code, std::string(to_string(error.code())) + ": " + error.what());
}

/// Reverses to_caf(); returns std::nullopt for an error that CAF itself made, such as a
/// caf::sec::request_timeout without a text.
inline std::optional<Error> from_caf(const caf::error& error) {
  if (!error) return {};
  const caf::message context = error.context();
  if (!context.match_elements<std::string>()) return {};
  const std::string& text = context.get_as<std::string>(0);
  const std::size_t colon = text.find(": ");
  if (colon == text.npos) return {};
  try {
    return Error(parse_errc(text.substr(0, colon)), text.substr(colon + 2));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace weft
