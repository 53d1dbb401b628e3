#pragma once
/// Prints recovery actions as words: "unwind, kill 1, launch 2".

#include <string>

#include <fmt/format.h>

#include "actors/supervision/action.hpp"

namespace weft::testing {

inline std::string words(const Action& action) {
  return std::visit(
      Overloaded{
          [](const action::Prepare& prepare) { return fmt::format("prepare at {}", prepare.step); },
          [](const action::Start& start) { return fmt::format("start at {}", start.step); },
          [](const action::Asked& asked) {
            return fmt::format("asked by {} for {} in run {}", asked.worker, asked.sequence,
                               asked.run);
          },
          [](const action::Admit& admit) { return fmt::format("admit {}", admit.programs); },
          [](const action::Grant& grant) { return fmt::format("grant {}", grant.steps); },
          [](const action::Pause&) { return std::string("pause"); },
          [](const action::EndAt& end) { return fmt::format("end at {}", end.step); },
          [](const action::PeerEnded& ended) {
            return fmt::format("{} ended after {}", ended.worker, ended.runs);
          },
          [](const action::Unwind&) { return std::string("unwind"); },
          [](const action::Cancel&) { return std::string("cancel"); },
          [](const action::Stop&) { return std::string("stop"); },
          [](const action::DropParts& parts) { return fmt::format("drop parts {}", parts.save); },
          [](const action::TellSaved& saved) {
            return fmt::format("saved {} {}", saved.ended.save, saved.ended.message);
          },
          [](const action::JoinParts& parts) {
            return fmt::format("join parts {}{}", parts.save,
                               parts.worker == 0 ? "" : fmt::format(" by {}", parts.worker));
          },
          [](const action::Kill& kill) {
            return fmt::format("kill {}{}", kill.worker, kill.dumps_stack ? " with its stack" : "");
          },
          [](const action::Launch& launch) { return fmt::format("launch {}", launch.worker); },
          [](const action::Warn&) { return std::string("warn"); },
          [](const action::GatherDeadline&) { return std::string("gather"); },
          [](const action::Grace& grace) { return fmt::format("grace {}", grace.ms); },
          [](const action::Backoff& backoff) {
            return fmt::format("back off {} for {} ms", backoff.worker, backoff.ms);
          },
          [](const action::WireGrace& grace) {
            return fmt::format("wire grace {}", grace.generation);
          },
          [](const action::LinkGrace& grace) {
            return fmt::format("link grace {} #{}", grace.worker, grace.number);
          },
      },
      action);
}

inline std::string words(const Actions& actions) {
  std::string text;
  for (const Action& action : actions) text += (text.empty() ? "" : ", ") + words(action);
  return text;
}

}  // namespace weft::testing
