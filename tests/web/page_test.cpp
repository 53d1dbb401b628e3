/// Tests the page of `weft inspect serve` in headless Chromium, with a running job. If
/// WEFT_SCREENSHOTS names a folder, the job has 16 chips, and pictures of the page are written to
/// the folder.

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/support/app_process.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/web/browser.hpp"
#include "transport/board/board.hpp"

namespace weft::page_test {
namespace {

using Json = nlohmann::json;
using testing::AppProcess;
using testing::Browser;
using testing::wait_until;

const char* const kEscape = "\xee\x80\x8c";  // U+E00C, as in WebDriver
const char* const kEnter = "\xee\x80\x87";
const char* const kLeft = "\xee\x80\x92";
const char* const kDown = "\xee\x80\x95";

const char* screenshots() { return std::getenv("WEFT_SCREENSHOTS"); }

/// Returns the words that run a job of `size` workers with as many chips each.
std::vector<std::string> job_words(const std::string& size) {
  return {DIGITS, "--epochs", "1000000", "--workers", size, "--chips", size};
}

/// Runs a job, serves its page, and opens the page in a browser.
class World {
 public:
  explicit World(const std::string& driver,
                 const std::string& size = screenshots() != nullptr ? "4" : "2")
      : job(job_words(size), {"HOME=" + home_.path()}) {
    id = job.job().substr(0, job.job().find(' '));
    job.wait_for_line("epoch   1/");
    server = std::make_unique<AppProcess>(std::vector<std::string>{WEFT, "inspect", "serve", id});
    url = server->wait_for_line("http://");
    browser = std::make_unique<Browser>(driver);
    browser->open(url);
    wait_until([&] { return browser->run("return timeline.rows.length > 0").get<bool>(); });
    browser->complaints();
  }
  ~World() {
    browser.reset();
    ::kill(server->pid(), SIGINT);
    EXPECT_EQ(server->wait(), 0) << server->output();
    ::kill(job.pid(), SIGTERM);
    job.wait();
    testing::expect_nothing_left(id);
  }
  pid_t worker_pid(int worker) {
    for (const ActorRow& row : Board::open(id, true).readable_rows()) {
      if (row.kind == ActorKind::worker && row.worker == worker) return row.pid;
    }
    return -1;
  }

 private:
  testing::TemporaryFolder home_;

 public:
  AppProcess job;
  std::string id;
  std::unique_ptr<AppProcess> server;
  std::string url;
  std::unique_ptr<Browser> browser;
};

class PageTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (const auto driver = Browser::find_driver()) world = std::make_unique<World>(*driver);
  }
  static void TearDownTestSuite() { world.reset(); }
  void SetUp() override {
    if (!world) GTEST_SKIP() << "there is no chromedriver: apt-get install chromium-driver";
  }
  void TearDown() override {
    if (!world) return;
    const Json complaints = browser().complaints();
    EXPECT_TRUE(complaints.empty()) << complaints.dump(1);
  }
  static Browser& browser() { return *world->browser; }
  static Json run(const std::string& script) { return browser().run(script); }
  static void wait_for(const std::string& condition) {
    wait_until([&] { return run("return !!(" + condition + ")").get<bool>(); });
  }
  static void keep_screenshot(const std::string& name) {
    if (screenshots() == nullptr) return;
    std::ofstream(fmt::format("{}/{}.png", screenshots(), name), std::ios::binary)
        << browser().screenshot();
  }

  static std::unique_ptr<World> world;
};
std::unique_ptr<World> PageTest::world;

TEST_F(PageTest, ShowsTheJobOnOneScreen) {
  EXPECT_EQ(run("return byId('name').textContent"), "digits");
  EXPECT_EQ(run("return [innerWidth, innerHeight]"), Json({1280, 720}));
  EXPECT_EQ(run("const box = byId('actors-scroller'); return box.scrollHeight - box.clientHeight"),
            0);
  for (const char* panel : {"mesh-panel", "loss-panel", "rate-panel", "actors-panel"}) {
    EXPECT_LE(run(fmt::format("return byId('{}').getBoundingClientRect().bottom", panel)), 720)
        << panel;
  }
  EXPECT_LT(run("return byId('timeline-panel').getBoundingClientRect().top"), 720);
  EXPECT_EQ(run("return document.querySelectorAll('.cell').length"),
            run("return page.state.num_chips"));
  EXPECT_EQ(run("return byId('actors').tBodies[0].rows.length"),
            run("return page.state.actors.length"));
  wait_for(
      "document.querySelector('#loss path.line') && document.querySelector('#rate path.line')");
  EXPECT_EQ(run("return byId('column').value"), "loss");
}

/// A job of 4 workers with 4 chips each has 21 actors, which aren't all on the screen at once.
TEST_F(PageTest, LetsEveryActorOfALargerJobBeReached) {
  const World large(*Browser::find_driver(), "4");
  EXPECT_EQ(large.browser->run("return [innerWidth, innerHeight]"), Json({1280, 720}));
  const Json found = large.browser->run(R"(
    const scroller = byId('actors-scroller'), rows = [...byId('actors').tBodies[0].rows];
    const scrolls = ['auto', 'scroll'].includes(getComputedStyle(scroller).overflowY);
    const hidden = scrolls || scroller.scrollHeight === scroller.clientHeight ? [] : ['all'];
    for (const row of rows) {
      row.scrollIntoView({block: 'nearest'});
      const box = row.getBoundingClientRect(), room = scroller.getBoundingClientRect();
      const end = Math.min(room.bottom, innerHeight) + 1;
      if (!box.height || box.top < room.top - 1 || box.bottom > end) hidden.push(row.textContent);
    }
    return [rows.length, hidden];
  )");
  EXPECT_EQ(found[0], 21);
  EXPECT_EQ(found[1], Json::array()) << found[1].dump(1);
}

/// Finds texts of the page that are cut off, out of the window, or too small to read.
const char* const kUnreadable = R"(
  const found = [];
  const room = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > room) found.push('the page is wider than the screen');
  for (const node of document.querySelectorAll('main *, .head *, .why *')) {
    const box = node.getBoundingClientRect();
    if (!box.width || node.closest('.mesh, .scroller')) continue;
    if (box.right > room + 1) found.push(`${node.tagName} ${node.id} ends at ${box.right}`);
  }
  for (const node of document.querySelectorAll('text, td, th, span, dd, dt, button, p, h2')) {
    if (!node.textContent.trim() || !node.getBoundingClientRect().width) continue;
    const scale = node.getScreenCTM ? node.getScreenCTM().a : 1;
    const px = parseFloat(getComputedStyle(node).fontSize) * scale;
    if (px < 11) found.push(`${node.textContent} has ${px} px`);
  }
  if (timeline.view.rowPx < 14) found.push('rows of the timeline are low');
  const lanes = byId('lanes'), rows = 18 + timeline.rows.length * timeline.view.rowPx;
  if (lanes.clientHeight < Math.min(rows, innerHeight / 2)) found.push('the timeline is cut');
  for (const node of document.querySelectorAll('.why dd, .why span')) {
    if (node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).display !== 'inline')
      found.push(`cut: ${node.textContent}`);
  }
  return found;
)";

TEST_F(PageTest, CanBeReadOnScreensOfAnyWidth) {
  for (const int width : {1280, 800, 500}) {
    browser().resize(width, 720);
    wait_for("innerWidth === " + std::to_string(width));
    run("drawTimeline(); show()");
    EXPECT_EQ(run(kUnreadable), Json::array()) << width;
  }
  browser().resize(1280, 720);
}

TEST_F(PageTest, HasOneNumberOfStepsASecond) {
  wait_for("page.state.steps_per_s > 0");
  const Json shown =
      run("take({at: page.at, state: {...page.state, steps_per_s: 12.345}});"
          "const fact = [...byId('facts').children].find((each) => each.firstChild.textContent === "
          "'steps/s');"
          "const {values} = curves.rate;"
          "return [fact.lastChild.textContent, byId('rate-value').textContent]");
  EXPECT_EQ(shown, Json({"12.3", "12.3"}));
  EXPECT_FALSE(run("return byId('why').textContent").get<std::string>().find("steps/s") !=
               std::string::npos);
}

TEST_F(PageTest, AJobThatHasMadeStepsIsNotSaidToHaveMadeNone) {
  EXPECT_EQ(run("return noRateText({step: 37674, over: false})"), "measuring …");
  EXPECT_NE(run("return noRateText({step: 37674, over: true})"),
            run("return noRateText({step: 0, over: false})"));
}

TEST_F(PageTest, NothingComesFromOutside) {
  const Json names =
      run("return performance.getEntriesByType('resource').map((entry) => entry.name)");
  const std::string origin = world->url.substr(0, world->url.find("/?"));
  EXPECT_FALSE(names.empty());
  for (const auto& name : names) {
    EXPECT_TRUE(name.get<std::string>().starts_with(origin + "/")) << name;
  }
  // The address in the browser doesn't have the token.
  EXPECT_EQ(run("return location.href"), origin + "/");
}

std::string rows_script(const std::string& what) {
  return "return [...byId('actors').tBodies[0].rows].map((row) => " + what + ")";
}

TEST_F(PageTest, TheTableIsSortedByAClickAndByAKey) {
  const Json names = run(rows_script("row.dataset.actor"));
  EXPECT_EQ(names.front(), "trainer");
  browser().click("th[data-key=name] button");
  EXPECT_EQ(run("return document.querySelector('th[data-key=name]').ariaSort"), "descending");
  const auto sorted = names.get<std::vector<std::string>>();
  EXPECT_EQ(run(rows_script("row.dataset.actor")),
            Json(std::vector<std::string>(sorted.rbegin(), sorted.rend())));
  browser().click("th[data-key=waits] button");
  EXPECT_EQ(run("return document.querySelector('th[data-key=waits]').ariaSort"), "ascending");
  EXPECT_EQ(run("const waited = table.shown.map((name) => table.state.actors.find((actor) => "
                "actor.name === name).waited_s || 0);"
                "return waited.every((value, i) => i === 0 || waited[i - 1] >= value)"),
            true);
  run("document.activeElement.blur()");
  browser().press("s");
  EXPECT_EQ(run("return document.querySelector('th[data-key=unread]').ariaSort"), "ascending");
  browser().click("th[data-key=name] button");
  EXPECT_EQ(run(rows_script("row.dataset.actor")), names);
}

TEST_F(PageTest, TheTableIsFiltered) {
  run("document.activeElement.blur()");
  browser().press("/");
  browser().press("worker 1");
  EXPECT_EQ(run(rows_script("row.dataset.actor")), Json({"worker 1"}));
  browser().press(kEscape);
  EXPECT_EQ(run("return table.shown.length"), run("return page.state.actors.length"));
}

TEST_F(PageTest, KeysSelectAnActorAndShowAllOfIt) {
  run("document.activeElement.blur(); select(null)");
  browser().press(std::string(kDown) + kDown);
  EXPECT_EQ(run("return page.selected"), "worker 0");
  EXPECT_EQ(run("return timeline.selected"), "worker 0");
  browser().press(kEnter);
  EXPECT_EQ(run("return byId('detail').open && byId('detail-title').textContent"), "worker 0");
  browser().press(kEscape);
  EXPECT_EQ(run("return byId('detail').open"), false);
  browser().press("?");
  EXPECT_EQ(run("return byId('help').open"), true);
  browser().press(kEscape);
  browser().click(".cell[data-chip='1']");
  EXPECT_EQ(run("return page.selected"), "chip 1");
  run("select(null)");
}

TEST_F(PageTest, TheTimelineZoomsAndMoves) {
  const auto span = [] { return run("return timeline.to - timeline.from").get<double>(); };
  run("document.activeElement.blur(); setFollow(false); showAll()");
  const double all = span();
  browser().press("+++");
  EXPECT_LT(span(), all / 4);
  const double from = run("return timeline.from").get<double>();
  browser().press(kLeft);
  EXPECT_LT(run("return timeline.from").get<double>(), from);
  browser().press("-");
  EXPECT_LT(span(), all / 2);
  const double before = span();
  run("const box = byId('timeline').getBoundingClientRect();"
      "byId('timeline').dispatchEvent(new WheelEvent('wheel', {deltaY: -100, bubbles: true, "
      "cancelable: true, clientX: box.left + 600, clientY: box.top + 40}))");
  EXPECT_LT(span(), before);
  browser().press("0");
  EXPECT_GE(span(), all);
  browser().press("f");
  EXPECT_EQ(run("return byId('follow').ariaPressed"), "true");
  // The timeline shows slices.
  EXPECT_EQ(
      run("drawTimeline(); const canvas = byId('timeline');"
          "const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
          "return data.some((value) => value !== 0)"),
      true);
}

TEST_F(PageTest, ColoursAreThoseOfTheSystemUntilAKeyChangesThem) {
  const auto paper = [] {
    return run("return getComputedStyle(document.body).backgroundColor").get<std::string>();
  };
  run("localStorage.clear(); delete document.documentElement.dataset.theme;"
      "document.activeElement.blur()");
  browser().click("#timeline-title");
  run("timeline.window = firstWindow(); setFollow(true)");
  browser().prefer_colours("light");
  const std::string light = paper();
  keep_screenshot("inspect-serve-light");
  browser().prefer_colours("dark");
  const std::string dark = paper();
  EXPECT_NE(light, dark);
  browser().press("d");
  EXPECT_EQ(paper(), light);
  browser().press("d");
  EXPECT_EQ(paper(), dark);
  keep_screenshot("inspect-serve-dark");
  run("localStorage.clear(); delete document.documentElement.dataset.theme");
  browser().prefer_colours("light");
}

std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

TEST_F(PageTest, AStoppedWorkerIsRed) {
  const std::string row = "document.querySelector('tr[data-actor=\"worker 1\"]')";
  const pid_t pid = world->worker_pid(1);
  ASSERT_GT(pid, 0);
  const std::int64_t begin = unix_ms();
  ::kill(pid, SIGSTOP);
  wait_for(row + ".dataset.state === 'stopped'");
  RecordProperty(
      "red_after_ms",
      std::to_string(std::stoll(run("return " + row + ".dataset.changedMs").get<std::string>()) -
                     begin));
  EXPECT_EQ(run("return getComputedStyle(" + row + ".cells[1]).color"),
            run("const probe = element('i'); probe.style.color = 'var(--bad)'; "
                "document.body.append(probe);"
                "const shown = getComputedStyle(probe).color; probe.remove(); return shown"));
  EXPECT_EQ(run("return " + row + ".querySelector('path').getAttribute('d') === SHAPES.bad"), true);
  wait_for(
      "byId('badge').dataset.state === 'stopped' && byId('why').textContent.startsWith('STOPPED')");
  // Actors that wait for this worker are shown as waiting, and the page cuts off no text.
  wait_for("document.querySelector('tr[data-actor=\"worker 0\"]').dataset.state === 'waiting'");
  EXPECT_EQ(run("show(); drawTimeline(); return 0"), 0);
  EXPECT_EQ(run(kUnreadable), Json::array());
  EXPECT_EQ(run("return byId('rate-value').textContent"), "0");
  run("openDetail('worker 1')");
  wait_for("byId('stack').textContent.includes('train(')");
  browser().press(kEscape);
  EXPECT_EQ(run("return document.querySelectorAll('.cell.bad').length"),
            run("return page.state.num_chips / page.state.workers"));
  if (screenshots() != nullptr) {
    wait_for("present() - page.state.actors.find((actor) => actor.name === 'worker 1').since > 8");
    keep_screenshot("inspect-serve-stopped");
  }
  ::kill(pid, SIGCONT);
  wait_for(row + ".dataset.state !== 'stopped'");
  wait_for("byId('badge').dataset.state === 'running'");
}

TEST_F(PageTest, AnExportedPageShowsTheSame) {
  const testing::TemporaryFolder folder;
  const std::string file = folder.path() + "/job.html";
  AppProcess app({WEFT, "inspect", "serve", world->id, "--export", file});
  ASSERT_EQ(app.wait(), 0) << app.output();
  browser().open("file://" + file);
  EXPECT_EQ(run("return byId('name').textContent"), "digits");
  EXPECT_EQ(run("return document.querySelectorAll('.cell').length"),
            run("return page.state.num_chips"));
  EXPECT_EQ(
      run("return timeline.rows.length > 0 && timeline.rows.some((row) => row.runs.t.length > 0)"),
      true);
  const std::string date = R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)";
  EXPECT_EQ(
      run("return /started" + date + ".*exported" + date + "/.test(byId('facts').textContent)"),
      true);
  browser().press("+");
  EXPECT_EQ(run("return performance.getEntriesByType('resource').length"), 0);
  browser().open(world->url);
  wait_for("timeline.rows.length > 0");
}

}  // namespace
}  // namespace weft::page_test
