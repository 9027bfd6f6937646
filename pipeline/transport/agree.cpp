#include "pipeline/transport/agree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace antichain {
namespace {

// What most ranks hold; the earliest of those that equally many do.
const std::string& majority(const std::vector<std::string>& values) {
  const auto holders = [&](const std::string& value) { return std::ranges::count(values, value); };
  return *std::ranges::max_element(values, {}, holders);
}

std::vector<int> odd_ranks(const std::vector<std::string>& values) {
  const std::string& usual = majority(values);
  std::vector<int> odd;
  for (size_t rank = 0; rank < values.size(); ++rank)
    if (values[rank] != usual) odd.push_back(int(rank));
  return odd;
}

std::string ranks_text(const std::vector<int>& ranks) {
  if (ranks.empty()) return "";
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

// What a rank holds, and where it is, as one text.
std::string packed(const std::string& host, const Held& held) {
  std::string text = host;
  for (const auto& [name, value] : held) text += '\0' + name + '\0' + value;
  return text;
}

struct RankHolds {
  std::string host;
  Held held;
};
RankHolds unpacked(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == '\0')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  RankHolds rank{parts[0], {}};
  for (size_t i = 1; i + 1 < parts.size(); i += 2) rank.held.emplace_back(parts[i], parts[i + 1]);
  return rank;
}

std::string value_of(const Held& held, const std::string& name) {
  const auto it = std::ranges::find(held, name, &Held::value_type::first);
  return it == held.end() ? "unknown" : it->second;
}

// Those of `ranks` that hold what the first of them does, with their hosts: "ranks 1, 3 (node2, node4)".
std::string who(const std::vector<int>& ranks, const std::vector<std::string>& values,
                const std::vector<RankHolds>& all) {
  std::vector<int> same;
  std::vector<std::string> hosts;
  for (const int rank : ranks) {
    if (values[size_t(rank)] != values[size_t(ranks.front())]) continue;
    same.push_back(rank);
    const std::string& host = all[size_t(rank)].host;
    if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
  }
  return fmt::format("{} ({})", ranks_text(same), fmt::join(hosts, ", "));
}

void refuse_odd(const std::vector<RankHolds>& all, const Advice& advice, ExitCode code) {
  for (const auto& [name, of_rank_zero] : all.front().held) {
    std::vector<std::string> values;
    for (const RankHolds& rank : all) values.push_back(value_of(rank.held, name));
    const std::vector<int> odd = odd_ranks(values);
    if (odd.empty()) continue;
    throw Error(fmt::format("{} is {} on {}, but {} on the others", name, values[size_t(odd.front())],
                            who(odd, values, all), majority(values)),
                advice(name, values), code);
  }
}

}  // namespace

std::string describe_odd(const std::vector<std::string>& values, const std::string& has,
                         const std::string& have) {
  const std::vector<int> odd = odd_ranks(values);
  if (odd.empty()) return "";
  return fmt::format("{} {} {}, the others {}", ranks_text(odd), odd.size() == 1 ? has : have,
                     values[size_t(odd.front())], majority(values));
}

void agree(Job& job, const Held& held, const Advice& advice, ExitCode code) {
  std::vector<RankHolds> all;
  for (const std::string& text : job.gather(packed(job.host(), held))) all.push_back(unpacked(text));
  on_rank_zero(job, [&] {
    refuse_odd(all, advice, code);
    return "";
  });
}

void agree(Job& job, const std::string& name, const std::string& value) {
  agree(job, {{name, value}},
        [](const auto&, const auto&) { return "start every rank with the same program, options and files"; });
}

std::string on_rank_zero(Job& job, const std::function<std::string()>& work) {
  std::string answer;
  if (job.rank() == 0) {
    try {
      answer = "+" + work();
    } catch (const Error& error) {
      answer = fmt::format("-{:03d}{}", int(error.code()), error.what());
    }
  }
  answer = job.broadcast(answer);
  if (answer.front() == '-') throw Error(answer.substr(4), "", ExitCode(std::stoi(answer.substr(1, 3))));
  return answer.substr(1);
}

}  // namespace antichain
