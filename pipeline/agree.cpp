#include "pipeline/agree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "framework/error.h"

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

}  // namespace

std::string describe_odd(const std::vector<std::string>& values, const std::string& has,
                         const std::string& have) {
  const std::vector<int> odd = odd_ranks(values);
  if (odd.empty()) return "";
  return fmt::format("{} {} {}, the others {}", ranks_text(odd), odd.size() == 1 ? has : have,
                     values[size_t(odd.front())], majority(values));
}

void agree(Transport& transport, const std::string& what, const std::string& value) {
  const auto all = transport.gather(value);
  const std::string odd = all.empty() ? "" : ranks_text(odd_ranks(all));
  const std::string verdict = transport.broadcast(odd);
  if (!verdict.empty())
    throw Error(fmt::format("{} of {} differs from that of the others", what, verdict),
                "start every rank with the same program, options and files");
}

std::string on_rank_zero(Transport& transport, const std::function<std::string()>& work) {
  std::string answer;
  if (transport.rank() == 0) {
    try {
      answer = "+" + work();
    } catch (const Error& error) {
      answer = fmt::format("-{:03d}{}", int(error.code()), error.what());
    }
  }
  answer = transport.broadcast(answer);
  if (answer.front() == '-') throw Error(answer.substr(4), "", ExitCode(std::stoi(answer.substr(1, 3))));
  return answer.substr(1);
}

}  // namespace antichain
