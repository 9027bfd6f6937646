// Draws a timeline as text: one row a rank, one character a cell of time. Where a rank has two stages, the
// actions of the second have marks of their own.
//
// A cell shows the action that takes most of it, or '.' when the rank idles for most of it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "pipeline/simulate/simulate.h"

namespace antichain {
namespace {

constexpr int least_width = 40;

// Which of its rank's stages an action is of: every second one is drawn by other marks.
class OddStages {
 public:
  explicit OddStages(const Timeline& timeline) {
    for (const Event& event : timeline.events) stages_[event.rank].insert(event.action.stage);
  }
  bool operator()(const Event& event) const {
    const std::set<int>& own = stages_.at(event.rank);
    return std::distance(own.begin(), own.find(event.action.stage)) % 2 == 1;
  }
  bool any() const {
    return std::ranges::any_of(stages_, [](const auto& of_rank) { return of_rank.second.size() > 1; });
  }

 private:
  std::map<int, std::set<int>> stages_;  // per rank
};

constexpr std::array<std::string_view, 10> raised_digits = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};

// One character; nothing for what is not drawn.
std::string glyph(const Action& action, bool odd_stage) {
  const int digit = std::max(action.microbatch, 0) % 10, letter = digit + (odd_stage ? 10 : 0);
  switch (action.verb) {
    case Verb::forward:
      return odd_stage ? std::string(raised_digits[size_t(digit)]) : std::string(1, char('0' + digit));
    case Verb::backward:
    case Verb::backward_input:
      return std::string(1, char('a' + letter));
    case Verb::backward_weight:
      return std::string(1, char('A' + letter));
    case Verb::reduce:
      return "=";
    case Verb::vote:
      return "?";
    case Verb::update:
      return "#";
    case Verb::load:
    case Verb::recv:
    case Verb::send:
      break;
  }
  return "";
}

// A Row holds one rank's cells. Events come in order and do not overlap, so at most one of them takes most of
// a cell.
class Row {
 public:
  Row(int cells, double cell_s)
      : marks_(cells, "."), most_s_(cells, 0), idle_s_(cells, cell_s), cell_s_(cell_s) {}

  void add(const Event& event, bool odd_stage) {
    const std::string mark = glyph(event.action, odd_stage);
    if (mark.empty() || cell_s_ <= 0) return;
    const int first = std::clamp(int(event.start_s / cell_s_), 0, int(marks_.size()) - 1);
    for (int cell = first; cell < int(marks_.size()) && cell * cell_s_ < event.end_s; ++cell) {
      const double inside_s =
          std::min(event.end_s, (cell + 1) * cell_s_) - std::max(event.start_s, cell * cell_s_);
      idle_s_[cell] -= inside_s;
      if (inside_s > most_s_[cell]) most_s_[cell] = inside_s, marks_[cell] = mark;
    }
  }

  std::string text() const {
    std::string text;
    const double half = 0.5 * cell_s_;
    for (size_t cell = 0; cell < marks_.size(); ++cell) text += idle_s_[cell] > half ? "." : marks_[cell];
    return text;
  }

 private:
  std::vector<std::string> marks_;
  std::vector<double> most_s_, idle_s_;
  double cell_s_;
};

// Returns 1, 2 or 5 times a power of ten, so that ticks are at least `cells` cells apart.
double tick_s(double cell_s, int cells) {
  const double least = cell_s * cells, power = std::pow(10, std::floor(std::log10(least)));
  for (double factor : {1., 2., 5.})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

// Draws "0         10        20 ms". Each label starts below the cell that it names.
std::string axis(int cells, double cell_s) {
  std::string line;
  const double every_s = tick_s(cell_s, 12);
  for (int tick = 0;; ++tick) {
    const size_t at = size_t(std::lround(tick * every_s / cell_s));
    const std::string label = fmt::format("|{:.6g}", tick * every_s * 1e3);
    if (at + label.size() + 3 > size_t(cells)) break;
    line += std::string(at - line.size(), ' ') + label;
  }
  return line + " ms";
}

// Entries are separated by three blanks. An entry that does not fit begins another line.
std::string legend(const Timeline& timeline, bool odd_stages, size_t margin, size_t width) {
  const auto has = [&](Verb verb) {
    return std::any_of(timeline.events.begin(), timeline.events.end(),
                       [&](const Event& e) { return e.action.verb == verb; });
  };
  std::vector<std::string> marks = {"0-9 forward of micro-batch m mod 10"};
  if (has(Verb::backward))
    marks.emplace_back(has(Verb::backward_input) ? "a-j its backward or input half" : "a-j its backward");
  else if (has(Verb::backward_input))
    marks.emplace_back("a-j its input half");
  if (has(Verb::backward_weight)) marks.emplace_back("A-J its weight half");
  if (odd_stages) {
    std::string others = "⁰-⁹ k-t";
    if (has(Verb::backward_weight)) others += " K-T";
    marks.push_back(others + " the same on the rank's second stage");
  }
  if (has(Verb::reduce)) marks.emplace_back("= all-reduce");
  if (has(Verb::vote)) marks.emplace_back("? vote");
  if (has(Verb::update)) marks.emplace_back("# update");
  marks.emplace_back(". idle");
  std::string text, line;
  for (const std::string& mark : marks) {
    if (!line.empty() && margin + line.size() + 3 + mark.size() > width) {
      text += std::string(margin, ' ') + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : "   ") + mark;
  }
  return text + std::string(margin, ' ') + line + "\n";
}

}  // namespace

std::string draw(const Timeline& step, int ranks, int width) {
  const Timeline timeline = one_period(step);
  const std::string last_label = fmt::format("rank {} ", std::max(ranks - 1, 0));
  const int margin = int(last_label.size());
  const int cells = std::max(width, least_width) - margin - 2;
  const double cell_s = timeline.length_s() / cells;

  const OddStages odd(timeline);
  std::vector<Row> rows(ranks, Row(cells, cell_s));
  for (const Event& event : timeline.events)
    if (event.rank < ranks) rows[event.rank].add(event, odd(event));

  std::string text;
  for (int r = 0; r < ranks; ++r)
    text += fmt::format("{:<{}}|{}|\n", fmt::format("rank {}", r), margin, rows[r].text());
  if (cell_s > 0) text += std::string(margin, ' ') + axis(cells + 2, cell_s) + "\n";
  return text + legend(timeline, odd.any(), size_t(margin), size_t(std::max(width, least_width)));
}

}  // namespace antichain
