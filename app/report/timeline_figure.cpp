#include "app/report/timeline_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace antichain {
namespace {

constexpr int picture_width = 1100, plot_width = 930;  // pixels: of the picture, and between the axes' ends
constexpr int digit_width = 7;

bool computes(const TimelineBox& box) { return box.kind == "forward" || box.kind == "backward"; }

double end_of(const std::vector<TimelineBox>& boxes) {
  double end_s = 0;
  for (const TimelineBox& box : boxes) end_s = std::max(end_s, box.end_s);
  return end_s;
}

// An update takes a thousandth of a step, so it is drawn at least three pixels wide, back from its end.
double drawn_from_s(const TimelineBox& box, double end_s) {
  return box.kind == "step" ? std::max(0.0, std::min(box.start_s, box.end_s - end_s * 3 / plot_width))
                            : box.start_s;
}

std::string boxes_of_kind(const std::vector<TimelineBox>& boxes, const std::string& kind, double end_s) {
  std::string rows;
  for (const TimelineBox& box : boxes)
    if (box.kind == kind && box.end_s > box.start_s)
      rows += fmt::format("{:.6g} {:.6g} {}\n", drawn_from_s(box, end_s) * 1e3, box.end_s * 1e3, box.rank);
  return rows;
}

std::string microbatch_labels(const std::vector<TimelineBox>& boxes, double end_s) {
  std::string rows;
  for (const TimelineBox& box : boxes) {
    if (box.microbatch < 0 || !computes(box)) continue;
    const std::string number = std::to_string(box.microbatch);
    const double pixels = (box.end_s - box.start_s) / end_s * plot_width;
    if (pixels >= double(number.size()) * digit_width + 3)
      rows += fmt::format("{:.6g} {} {}\n", (box.start_s + box.end_s) / 2 * 1e3, box.rank, number);
  }
  return rows;
}

std::string idle_shares(const std::vector<TimelineBox>& boxes, double end_s, int ranks) {
  std::vector<double> busy_s(size_t(ranks), 0);
  for (const TimelineBox& box : boxes)
    if (computes(box) || box.kind == "step") busy_s[size_t(box.rank)] += box.end_s - box.start_s;
  std::string rows;
  for (int rank = 0; rank < ranks; ++rank)
    rows += fmt::format("{} \"idle {:.0f} %\"\n", rank, (1 - busy_s[size_t(rank)] / end_s) * 100);
  return rows;
}

}  // namespace

std::string draw_timeline(GnuplotScript& script, const std::vector<TimelineBox>& boxes, int ranks,
                          const std::string& name, const std::string& title) {
  constexpr std::array<std::array<const char*, 3>, 4> kinds = {{{"forward", "forward", "#56B4E9"},
                                                                {"backward", "backward", "#E69F00"},
                                                                {"reduce", "all-reduce", "#CC79A7"},
                                                                {"step", "update", "#006B4F"}}};
  const double end_s = end_of(boxes);
  PlotList plots;
  for (const auto& [kind, what, paint] : kinds)
    if (const std::string rows = boxes_of_kind(boxes, kind, end_s); !rows.empty())
      plots.add(
          fmt::format("{} using (($1+$2)/2):3:1:2:($3-0.4):($3+0.4) with boxxyerror lc rgb '{}' title '{}'",
                      script.data(rows), paint, what));
  if (plots.empty()) return "";
  if (const std::string rows = microbatch_labels(boxes, end_s); !rows.empty())
    plots.add(script.data(rows) + " using 1:2:3 with labels font ',10' notitle");
  plots.add(fmt::format("{} using ({:.6g}):1:2 with labels left font ',11' offset 0.7,0 notitle",
                        script.data(idle_shares(boxes, end_s, ranks)), end_s * 1e3));
  const std::string file = script.begin({.name = name,
                                         .title = title,
                                         .x = "time, ms (numbers: micro-batches)",
                                         .y = "rank",
                                         .width = picture_width,
                                         .height = 170 + 34 * ranks});
  script.add(
      fmt::format("unset grid\nset style fill solid 1 border rgb 'white'\nset yrange [{}:-0.6]\nset ytics 1\n"
                  "set xrange [0:{:.6g}]\nset key outside bottom center horizontal\nset rmargin 13\n{}",
                  ranks - 0.4, end_s * 1e3, plots.str()));
  return file;
}

}  // namespace antichain
