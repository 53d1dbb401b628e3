#include "transport/format/run_card.hpp"

#include <cmath>
#include <optional>

#include <weft_schema/run_card_generated.h>
#include <weft/tensor/error.hpp>

#include "data/files/plain_file.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/format/tensor_fields.hpp"

namespace weft {
namespace {

std::optional<std::string> fault_of_hosts(const RunCard& card) {
  if (card.num_hosts < 1 || card.host < 0 || card.host >= card.num_hosts) {
    return fmt::format("host {} of {}", card.host, card.num_hosts);
  }
  if (card.job.find_first_not_of("0123456789abcdef") != card.job.npos) {
    return fmt::format("job = \"{}\": expected hex digits", card.job);
  }
  if (card.num_hosts == 1) return std::nullopt;
  const bool fits_mesh =
      card.mesh.size() == std::int64_t{card.num_hosts} * chips_per_host(card.mesh);
  if (card.job.empty() || !fits_mesh || card.num_workers % card.num_hosts != 0) {
    return fmt::format("job \"{}\" has {} hosts, {} workers and a mesh with {} chips per host",
                       card.job, card.num_hosts, card.num_workers, chips_per_host(card.mesh));
  }
  return std::nullopt;
}

std::optional<std::string> fault_of(const RunCard& card) {
  if (!card.checkpoints.starts_with('/') && url_scheme(card.checkpoints).empty()) {
    return fmt::format("checkpoints = \"{}\": expected an absolute path or a URL",
                       card.checkpoints);
  }
  if (!std::isfinite(card.keep_for_rescue_s) || card.keep_for_rescue_s < 0) {
    return fmt::format("keep_for_rescue_s = {}", card.keep_for_rescue_s);
  }
  if (card.fit_number < 1) return fmt::format("fit_number = {}", card.fit_number);
  if (card.num_workers < 1 || card.mesh.size() % card.num_workers != 0) {
    return fmt::format("{} workers with {} chips", card.num_workers, card.mesh.size());
  }
  return fault_of_hosts(card);
}

Mesh read_mesh(const fb::RunCard& stored) {
  const std::string_view what = kRunCardFormat.name;
  try {
    return {read_numbers(*stored.mesh_shape(), what), read_strings(*stored.axis_names()),
            read_numbers(*stored.device_ids(), what), read_dcn_shape(stored.dcn_shape(), what)};
  } catch (const Error& e) {
    fail(Errc::corrupt, "{}: its mesh: {}", what, e.what());
  }
}

}  // namespace

std::vector<std::byte> encode_run_card(const RunCard& card) {
  if (const auto fault = fault_of(card)) {
    fail(Errc::invalid_argument, "{}: {}", kRunCardFormat.name, *fault);
  }
  flatbuffers::FlatBufferBuilder builder;
  const auto mesh_shape = write_dims(builder, card.mesh.shape());
  const auto axis_names = builder.CreateVectorOfStrings(card.mesh.axis_names());
  const auto device_ids = builder.CreateVector(card.mesh.device_ids());
  const auto checkpoints = builder.CreateString(card.checkpoints);
  const std::vector<std::int64_t> hosts = dcn_shape(card.mesh);
  const auto hosts_list = hosts.empty() ? 0 : builder.CreateVector(hosts);
  const auto job = card.job.empty() ? 0 : builder.CreateString(card.job);
  fb::FinishRunCardBuffer(
      builder,
      fb::CreateRunCard(builder, mesh_shape, axis_names, device_ids, card.num_workers, card.seed,
                        card.begin_step, checkpoints, card.keep_for_rescue_s, card.fit_number,
                        hosts_list, job, card.host, card.num_hosts, card.has_copies));
  return make_envelope(kRunCardFormat, body_of(builder));
}

RunCard decode_run_card(std::span<const std::byte> bytes) {
  const auto body = open_file(kRunCardFormat, bytes);
  verify_body(body, fb::VerifyRunCardBuffer, kRunCardFormat.name);
  const fb::RunCard& stored = *fb::GetRunCard(body.data());
  RunCard card{.mesh = read_mesh(stored),
               .num_workers = stored.num_workers(),
               .seed = stored.seed(),
               .begin_step = stored.begin_step(),
               .checkpoints = stored.checkpoints()->str(),
               .keep_for_rescue_s = stored.keep_for_rescue_s(),
               .fit_number = stored.fit_number(),
               .job = stored.job() != nullptr ? stored.job()->str() : "",
               .host = stored.host(),
               .num_hosts = stored.num_hosts(),
               .has_copies = stored.has_copies()};
  if (const auto fault = fault_of(card)) fail(Errc::corrupt, "{}: {}", kRunCardFormat.name, *fault);
  return card;
}

}  // namespace weft
