#include "app/report/time_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/cli/number_text.h"
#include "app/cli/table.h"
#include "pipeline/host/core_time.h"

namespace antichain {
namespace {

std::string seconds(double s) { return s == 0 ? "-" : fmt::format("{:.2f}", s); }

// Kinds that took no time have no column.
std::vector<Spent> kinds(const std::vector<TimeSheet>& ranks) {
  std::vector<Spent> all;
  for (size_t k = 0; k < kinds_of_spent; ++k)
    if (std::ranges::any_of(ranks, [&](const TimeSheet& t) { return t.seconds(Spent(k)) > 0; }))
      all.push_back(Spent(k));
  return all;
}

double starved_share_of(const TimeSheet& t) { return t.total_s() > 0 ? t.starved_s() / t.total_s() : 0; }

}  // namespace

double starved_share(const std::vector<TimeSheet>& ranks) {
  return ranks.empty() ? 0 : starved_share_of(*std::ranges::max_element(ranks, {}, starved_share_of));
}

std::string starved_rank(const std::vector<TimeSheet>& ranks, const std::vector<std::string>& host_of_rank) {
  if (starved_share(ranks) <= doubtful_starved_share) return "";
  const size_t rank = size_t(std::ranges::max_element(ranks, {}, starved_share_of) - ranks.begin());
  return fmt::format("rank {} on {} had no core for {} % of its time", rank,
                     rank < host_of_rank.size() ? host_of_rank[rank] : "its host",
                     percent(starved_share(ranks)));
}

double load_imbalance(const std::vector<TimeSheet>& ranks) {
  double most = 0, sum = 0;
  for (const TimeSheet& t : ranks) most = std::max(most, t.computing_s()), sum += t.computing_s();
  return sum > 0 ? most * double(ranks.size()) / sum : 1;
}

std::string describe(const std::vector<TimeSheet>& ranks, const std::vector<std::string>& host_of_rank) {
  const std::vector<Spent> columns = kinds(ranks);
  std::vector<Table::Column> header = {{"rank"}, {"host", Table::Align::left}};
  for (const Spent kind : columns) header.push_back({fmt::format("{}\ns", name_of(kind))});
  header.push_back({"sum\ns"});
  header.push_back({"computing\n%"});
  Table table(header);
  double computing_s = 0, total_s = 0;
  for (size_t r = 0; r < ranks.size(); ++r) {
    std::vector<std::string> cells = {std::to_string(r), r < host_of_rank.size() ? host_of_rank[r] : "-"};
    for (const Spent kind : columns) cells.push_back(seconds(ranks[r].seconds(kind)));
    const double rank_s = ranks[r].total_s();
    cells.push_back(seconds(rank_s));
    cells.push_back(percent(rank_s > 0 ? ranks[r].computing_s() / rank_s : 0));
    table.add(cells);
    computing_s += ranks[r].computing_s();
    total_s += rank_s;
  }
  return fmt::format(
      "{}\n{}\n{}", styled(Style::heading, "Where the time went"), table.str(),
      hanging("Load", 15,
              fmt::format("busiest rank computes {:.2f} times the mean; all {} % of the time",
                          load_imbalance(ranks), percent(total_s > 0 ? computing_s / total_s : 0))));
}

nlohmann::ordered_json to_json(const std::vector<TimeSheet>& ranks) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const TimeSheet& t : ranks) {
    nlohmann::ordered_json rank;
    for (size_t k = 0; k < kinds_of_spent; ++k) rank[std::string(name_of(Spent(k)))] = t.seconds(Spent(k));
    json.push_back(std::move(rank));
  }
  return json;
}

}  // namespace antichain
