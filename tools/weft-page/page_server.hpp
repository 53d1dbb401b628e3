#pragma once
/// PageServer: a job's page for the browsers of this host.
///
///   GET /?token=T      302 to /, with a cookie; all others need it, or "Authorization: Bearer T"
///   GET /              the page, and its /page.css and /page.js
///   GET /events        what changes, as server-sent events
///   GET /timeline      ?after=NS: what happened since then (CLOCK_MONOTONIC)
///   GET /curves        reports and steps a second
///   GET /stack         ?actor=NAME: where its thread is
///   GET /metrics       Prometheus' text format
///
/// Requests for another host's name are refused (421), so that no page of another site can have its
/// own name lead here; so is any other method (405), and a ninth reader of events (503).

#include <memory>
#include <string>

#include "tools/weft/inspect/page_feed.hpp"

namespace weft {

inline constexpr int kEventReadersMax = 8;

class PageServer {
 public:
  /// Listens on 127.0.0.1; port 0: any that is free. Throws io where the port can't be had.
  PageServer(PageFeed& feed, int port);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  /// With the token.
  std::string url() const;
  /// Answers until stop() is called by another thread. False: the system ended it before.
  bool serve();
  void stop();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weft
