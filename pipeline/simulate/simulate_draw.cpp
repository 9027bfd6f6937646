// Draws a timeline as text: one row a rank, one character a cell of time.
//
// A cell shows the action that takes most of it, or '.' when the rank idles for most of it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipeline/simulate/simulate.h"

namespace antichain {
namespace {

constexpr int least_width = 40;

char glyph(const Action& action) {
  const int digit = std::max(action.microbatch, 0) % 10;
  switch (action.verb) {
    case Verb::forward:
      return char('0' + digit);
    case Verb::backward:
    case Verb::backward_input:
      return char('a' + digit);
    case Verb::backward_weight:
      return char('A' + digit);
    case Verb::reduce:
      return '=';
    case Verb::update:
      return '#';
    case Verb::load:
    case Verb::recv:
    case Verb::send:
      break;
  }
  return 0;  // not drawn
}

// A Row holds one rank's cells. Events come in order and do not overlap, so at most one of them takes most of
// a cell.
class Row {
 public:
  Row(int cells, double cell_s)
      : text_(cells, '.'), most_s_(cells, 0), idle_s_(cells, cell_s), cell_s_(cell_s) {}

  void add(const Event& event) {
    const char c = glyph(event.action);
    if (c == 0 || cell_s_ <= 0) return;
    const int first = std::clamp(int(event.start_s / cell_s_), 0, int(text_.size()) - 1);
    for (int cell = first; cell < int(text_.size()) && cell * cell_s_ < event.end_s; ++cell) {
      const double inside_s =
          std::min(event.end_s, (cell + 1) * cell_s_) - std::max(event.start_s, cell * cell_s_);
      idle_s_[cell] -= inside_s;
      if (inside_s > most_s_[cell]) most_s_[cell] = inside_s, text_[cell] = c;
    }
  }

  std::string text() const {
    std::string text = text_;
    const double half = 0.5 * cell_s_;
    for (size_t cell = 0; cell < text.size(); ++cell)
      if (idle_s_[cell] > half) text[cell] = '.';
    return text;
  }

 private:
  std::string text_;
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
std::string legend(const Timeline& timeline, size_t margin, size_t width) {
  const auto has = [&](Verb verb) {
    return std::any_of(timeline.events.begin(), timeline.events.end(),
                       [&](const Event& e) { return e.action.verb == verb; });
  };
  std::vector<std::string> marks = {"0-9 forward of micro-batch m mod 10"};
  if (has(Verb::backward)) marks.emplace_back("a-j its backward");
  if (has(Verb::backward_input)) marks.insert(marks.end(), {"a-j its input half", "A-J its weight half"});
  if (has(Verb::reduce)) marks.emplace_back("= all-reduce");
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

std::string draw(const Timeline& timeline, int ranks, int width) {
  const std::string last_label = fmt::format("rank {} ", std::max(ranks - 1, 0));
  const int margin = int(last_label.size());
  const int cells = std::max(width, least_width) - margin - 2;
  const double cell_s = timeline.step_s / cells;

  std::vector<Row> rows(ranks, Row(cells, cell_s));
  for (const Event& event : timeline.events)
    if (event.rank < ranks) rows[event.rank].add(event);

  std::string text;
  for (int r = 0; r < ranks; ++r)
    text += fmt::format("{:<{}}|{}|\n", fmt::format("rank {}", r), margin, rows[r].text());
  if (cell_s > 0) text += std::string(margin, ' ') + axis(cells + 2, cell_s) + "\n";
  return text + legend(timeline, size_t(margin), size_t(std::max(width, least_width)));
}

}  // namespace antichain
