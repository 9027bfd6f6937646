// The page has the program's own numbers, and a browser draws every one of them.
#include "app/report/timeline_page.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "framework/json.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/simulate/simulate.h"
#include "tests/data/temporary_folder.h"
#include "tests/pipeline/planning/networks.h"

namespace antichain::test {
namespace {

// Two stages, a forward of 1 ms and a backward of 2 ms; each forward keeps 100 bytes.
struct Page {
  Page() {
    profile.nodes[2].name = "</script><b>";
    timeline = simulate(make_schedule(profile, plan, Policy::one_f_one_b, 3), plan, profile, {});
    text = page_of({shown("1f1b", timeline)});
  }
  ShownSchedule shown(const std::string& name, const Timeline& its_timeline) const {
    const Cluster cluster{.devices = {{.speed = 1}, {.speed = 0.5}}};
    return {.name = name,
            .figures = {{"step\nms", "9"}},
            .plan = plan,
            .cluster = cluster,
            .timeline = its_timeline,
            .memory = memory_shares(make_schedule(profile, plan, Policy::one_f_one_b, 3), plan, profile)};
  }
  std::string page_of(const std::vector<ShownSchedule>& schedules) const {
    return timeline_page(profile, {.title = "title", .about = "about", .notes = {"a note"}}, schedules);
  }
  nlohmann::json data() const { return data_of(text); }
  static nlohmann::json data_of(const std::string& text) {
    const std::string begin = "type=\"application/json\">";
    const size_t from = text.find(begin) + begin.size();
    return nlohmann::json::parse(text.substr(from, text.find("</script>", from) - from));
  }

  Profile profile = chain(2, {.forward_s = 1e-3, .backward_input_s = 2e-3, .stash_bytes = 100});
  const Plan plan = one_node_each(profile);
  Timeline timeline;
  std::string text;
};

TEST(TimelinePage, HasTheSimulatedTimesAndBytes) {
  const Page page;
  const nlohmann::json shown = page.data().at("schedules").at(0);
  EXPECT_EQ(shown.at("length_s"), page.timeline.step_s);
  ASSERT_EQ(shown.at("events").size(), 12u) << "three forwards and backwards on both ranks";
  const nlohmann::json first_on_rank_1 = shown.at("events").at(6);
  EXPECT_EQ(first_on_rank_1.at(0), 1);
  EXPECT_EQ(first_on_rank_1.at(1), "F");
  EXPECT_EQ(first_on_rank_1.at(4), 1e-3);
  EXPECT_EQ(first_on_rank_1.at(6),
            "waited 1.00 ms for the output of </script><b>, micro-batch 0, from rank 0");
  // Rank 0 has two micro-batches in flight, rank 1 one.
  const auto most = [&](int rank) {
    int64_t bytes = 0;
    for (const auto& point : shown.at("memory").at(size_t(rank)))
      bytes = std::max(bytes, point.at(1).get<int64_t>());
    return bytes;
  };
  const std::vector<MemoryShares> memory = page.shown("1f1b", page.timeline).memory;
  EXPECT_EQ(most(0), memory[0].bytes());
  EXPECT_EQ(most(1), memory[1].bytes());
  EXPECT_EQ(memory[0].kept, 2 * memory[1].kept);
  EXPECT_EQ(shown.at("memory").at(0).at(0).at(1), memory[0].bytes() - memory[0].kept) << "at first";
}

TEST(TimelinePage, SaysWhatEachRankHas) {
  const nlohmann::json ranks = Page().data().at("schedules").at(0).at("ranks");
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks.at(1).at("device"), "device 1, speed 0.5");
  EXPECT_EQ(ranks.at(1).at("layers").at(0).get<std::string>().substr(0, 17), "stage 1, nodes 1:");
}

// A schedule whose steps overlap needs several to show it, and then all have as many: on one axis of time
// the shorter one is the faster one.
TEST(TimelinePage, ShowsEquallyManyStepsOfEverySchedule) {
  const Page page;
  Timeline overlapped = page.timeline;
  overlapped.period_s = overlapped.step_s * 0.9;
  const nlohmann::json data =
      Page::data_of(page.page_of({page.shown("a", page.timeline), page.shown("b", overlapped)}));
  EXPECT_EQ(data.at("steps"), 3);
  for (const auto& schedule : data.at("schedules")) EXPECT_EQ(schedule.at("events").size(), 3 * 12u);
  EXPECT_DOUBLE_EQ(data.at("schedules").at(0).at("length_s"), 3 * page.timeline.step_s);
  EXPECT_DOUBLE_EQ(data.at("schedules").at(1).at("length_s"), 2.8 * page.timeline.step_s);
  EXPECT_EQ(data.at("notes").at(0), "a note");
}

TEST(TimelinePage, LoadsNothing) {
  const Page page;
  for (const char* part : {"src=", "href=", "@import", "url(http"})
    EXPECT_EQ(page.text.find(part), std::string::npos) << part;
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  for (size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) text.append(buffer.data(), n);
  ::pclose(pipe);
  return text;
}

TEST(TimelinePage, IsDrawnByABrowser) {
  const std::string browser = output_of("command -v chromium chromium-browser google-chrome | head -n 1");
  if (browser.empty()) GTEST_SKIP() << "there is no Chromium";
  const TemporaryFolder folder;
  // The wheel alone is left to the page, which scrolls.
  const std::string wheels =
      "<script type=\"module\">for (const ctrlKey of [false, true]) {"
      "const turn = new WheelEvent('wheel', { deltaY: 1, cancelable: true, ctrlKey });"
      "document.querySelector('svg').dispatchEvent(turn);"
      "document.body.append(` zooms with Ctrl ${ctrlKey}: ${turn.defaultPrevented};`); }</script>";
  write_file(folder.str() + "/page.html", Page().text + wheels);
  const std::string drawn =
      output_of("timeout 60 " + browser.substr(0, browser.find('\n')) +
                " --headless --no-sandbox --disable-gpu --virtual-time-budget=5000 "
                "--user-data-dir=" +
                folder.str() + "/profile --dump-dom file://" + folder.str() + "/page.html 2>/dev/null");
  size_t actions = 0;
  for (size_t at = 0; (at = drawn.find("<rect class=\"action\"", at)) != std::string::npos; ++at) ++actions;
  EXPECT_EQ(actions, 12u);
  EXPECT_NE(drawn.find(">rank 1</tspan>"), std::string::npos);
  EXPECT_NE(drawn.find(">device 1, speed 0.5</td>"), std::string::npos);
  EXPECT_NE(drawn.find("zooms with Ctrl false: false; zooms with Ctrl true: true;"), std::string::npos);
  size_t curves = 0;
  for (size_t at = 0; (at = drawn.find("<path class=\"memory\"", at)) != std::string::npos; ++at) ++curves;
  EXPECT_EQ(curves, 2u);
}

}  // namespace
}  // namespace antichain::test
