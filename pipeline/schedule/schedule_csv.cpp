#include "pipeline/schedule/schedule_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "framework/error.h"
#include "pipeline/schedule/schedule_passes.h"

namespace antichain {
namespace {

constexpr std::string_view overlap = "OVERLAP_F_B";
constexpr int most_of_either = 65'535;  // stages or micro-batches

// Returns the indices of the actions that compute.
std::vector<size_t> computing(const std::vector<Action>& actions) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < actions.size(); ++i)
    if (computes(actions[i].verb)) indices.push_back(i);
  return indices;
}

// Says whether the n-th of the indices, a forward, is one of a fused pair, by what its backward receives.
enum class Pairing { no, yes, receives_nothing };
Pairing pairing(const std::vector<Action>& actions, const std::vector<size_t>& indices, size_t n) {
  if (n + 1 >= indices.size()) return Pairing::no;
  const Action &first = actions[indices[n]], &second = actions[indices[n + 1]];
  if (first.verb != Verb::forward || second.verb != Verb::backward || first.stage == second.stage)
    return Pairing::no;
  bool receives = false;
  for (size_t i = 0; i < indices[n + 1]; ++i) {
    const Action& a = actions[i];
    const bool needed = a.verb == Verb::recv && a.message.flow == Flow::gradient && a.stage == second.stage &&
                        a.microbatch == second.microbatch;
    if (needed && i > indices[n]) return Pairing::no;
    receives |= needed;
  }
  return receives ? Pairing::yes : Pairing::receives_nothing;
}

std::string line_of(const std::vector<Action>& actions) {
  const std::vector<size_t> indices = computing(actions);
  std::vector<Pairing> pairs;
  for (size_t n = 0; n < indices.size(); ++n) pairs.push_back(pairing(actions, indices, n));
  const bool has_pairs = std::ranges::count(pairs, Pairing::yes) > 0;
  std::vector<std::string> cells;
  for (size_t n = 0; n < indices.size(); ++n) {
    std::string cell = print(actions[indices[n]]);
    if (pairs[n] == Pairing::yes || (has_pairs && pairs[n] == Pairing::receives_nothing))
      cell = fmt::format("({};{}){}", cell, print(actions[indices[++n]]), overlap);
    cells.push_back(std::move(cell));
  }
  return fmt::format("{}\n", fmt::join(cells, ","));
}

// A CsvParser reads cell by cell. Every error names the place.
class CsvParser {
 public:
  CsvParser(std::string_view text, const std::string& origin) : rest_(text), origin_(origin) {}

  CsvSchedule parse() {
    while (!rest_.empty()) read_line();
    if (schedule_.microbatches == 0) fail("there is no action");
    return std::move(schedule_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(fmt::format("{}:{}:{}: {}", origin_, line_, column_, why));
  }

  void read_line() {
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    schedule_.orders.emplace_back();
    last_.clear();
    column_ = 1;
    for (size_t begin = 0; begin <= line.size();) {
      const size_t stop = std::min(line.find(',', begin), line.size());
      column_ = int(begin) + 1;
      read_cell(trimmed(line.substr(begin, stop - begin)));
      begin = stop + 1;
    }
  }

  std::string_view trimmed(std::string_view cell) {
    while (cell.starts_with(' ')) cell.remove_prefix(1), ++column_;
    while (cell.ends_with(' ')) cell.remove_suffix(1);
    return cell;
  }

  void read_cell(std::string_view cell) {
    if (cell.empty()) return;
    ComputeOrder& order = schedule_.orders.back();
    if (!cell.starts_with('(')) return add(read_action(cell));
    const size_t semicolon = cell.find(';'), end = cell.find(')');
    if (semicolon == cell.npos || end == cell.npos || end < semicolon || cell.substr(end + 1) != overlap)
      refuse(cell);
    const Action first = read_action(cell.substr(1, semicolon - 1));
    const Action second = read_action(cell.substr(semicolon + 1, end - semicolon - 1));
    if (first.verb != Verb::forward || second.verb != Verb::backward || first.stage == second.stage)
      fail(fmt::format("\"{}\" is no forward and then the whole backward of another stage", cell));
    order.pairs.push_back(order.actions.size());
    add(first);
    add(second);
  }

  [[noreturn]] void refuse(std::string_view cell) const {
    fail(
        fmt::format("\"{}\" is no action such as 0F3, 1B0, 1I0, 1W0 or (0F7;7B3){}; other words than these "
                    "are not for a compute-only schedule",
                    cell, overlap));
  }

  Action read_action(std::string_view word) const {
    const std::optional<Action> action = parse_action(word);
    if (!action || !computes(action->verb) || action->stage > most_of_either ||
        action->microbatch > most_of_either)
      refuse(word);
    return *action;
  }

  void add(const Action& action) {
    check_ascending(action);
    schedule_.microbatches = std::max(schedule_.microbatches, action.microbatch + 1);
    schedule_.orders.back().actions.push_back(action);
  }

  // Whole backwards compute both gradients.
  void check_ascending(const Action& a) {
    enum Kind { outputs, input_gradients, weight_gradients };
    std::vector<Kind> kinds;
    if (a.verb == Verb::forward) kinds.push_back(outputs);
    if (a.verb == Verb::backward || a.verb == Verb::backward_input) kinds.push_back(input_gradients);
    if (a.verb == Verb::backward || a.verb == Verb::backward_weight) kinds.push_back(weight_gradients);
    for (const Kind kind : kinds) {
      const auto [last, fresh] = last_.try_emplace({a.stage, kind}, a);
      if (!fresh && last->second.microbatch >= a.microbatch)
        fail(fmt::format("{} comes after {}: micro-batches are out of order", print(a), print(last->second)));
      last->second = a;
    }
  }

  std::string_view rest_;
  const std::string& origin_;
  int line_ = 0, column_ = 1;
  std::map<std::pair<int, int>, Action> last_;  // on the line's rank, by stage and what is computed
  CsvSchedule schedule_;
};

void check_places(const CsvSchedule& csv, const Crossing& crossing, const std::string& origin) {
  for (size_t r = 0; r < csv.orders.size(); ++r)
    for (const Action& a : csv.orders[r].actions) {
      const auto fail = [&](const std::string& why) {
        throw Error(fmt::format("{}:{}: {} {}", origin, r + 1, print(a), why),
                    "give the plan that the schedule is for", ExitCode::usage);
      };
      if (a.stage >= crossing.stages())
        fail(fmt::format("names no stage: the plan has {}", crossing.stages()));
      if (crossing.rank_of(a.stage, a.microbatch) != int(r))
        fail(fmt::format("is on rank {}, but the plan has it on rank {}", r,
                         crossing.rank_of(a.stage, a.microbatch)));
    }
}

}  // namespace

std::string to_csv(const Schedule& schedule) {
  if (!schedule.delays.empty())
    throw Error("the CSV of PyTorch's pipelining has no delays, but the schedule trains with older weights",
                "write a schedule file of another name than *.csv", ExitCode::usage);
  std::string text;
  for (const std::vector<Action>& actions : schedule.ranks) text += line_of(actions);
  return text;
}

CsvSchedule parse_csv(const std::string& text, const std::string& origin) {
  return CsvParser(text, origin).parse();
}

Schedule make_schedule(const Profile& profile, const Plan& plan, const CsvSchedule& csv,
                       const std::string& origin) {
  validate(plan, profile);
  const Crossing crossing = crossing_of(profile, plan);
  check_seats(crossing, csv.microbatches);
  check_places(csv, crossing, origin);
  const Seats seats = antichain::seats(crossing.ranks, csv.microbatches);
  if (csv.orders.size() != seats.size())
    throw Error(fmt::format("{} is a schedule of {} rank{}, but the plan has {}", origin, csv.orders.size(),
                            csv.orders.size() == 1 ? "" : "s", seats.size()),
                "give the plan that the schedule is for", ExitCode::usage);
  const Schedule schedule = complete(csv.orders, crossing, seats, csv.microbatches);
  validate(schedule, profile, plan);
  return schedule;
}

}  // namespace antichain
