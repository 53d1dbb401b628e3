#pragma once
/// PageServer: serves a job's page to the browsers of this host.
///
///   GET /?token=T      redirects (302) to / and sets a cookie
///   GET /              the page, and its /page.css and /page.js
///   GET /events        changes, as server-sent events
///   GET /timeline      ?after=NS: events since that time (CLOCK_MONOTONIC)
///   GET /curves        reports and steps per second
///   GET /stack         ?actor=NAME: the stack of the actor's thread
///   GET /metrics       Prometheus' text format
///
/// All other requests need the cookie, or "Authorization: Bearer T". Requests for another host name
/// are refused (421): otherwise a page of another site could reach this server by a host name that
/// the site controls. Other methods (405) and a ninth reader of events (503) are refused too.

#include <memory>
#include <string>

#include "tools/weft/inspect/page_feed.hpp"

namespace weft {

inline constexpr int kEventReadersMax = 8;

class PageServer {
 public:
  /// Listens on 127.0.0.1. Port 0 means any free port. Throws io if the port isn't available.
  PageServer(PageFeed& feed, int port);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  /// Returns the URL with the token.
  std::string url() const;
  /// Answers requests until another thread calls stop(). Returns false if the server ended without
  /// stop().
  bool serve();
  void stop();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weft
