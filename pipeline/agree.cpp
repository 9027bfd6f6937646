#include "pipeline/agree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/error.h"

namespace antichain {

void agree(Transport& transport, const std::string& what, const std::string& value) {
  const auto all = transport.gather(value);
  std::vector<int> odd;
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] != all[0]) odd.push_back(int(rank));
  const std::string verdict = transport.broadcast(fmt::format("{}", fmt::join(odd, ", ")));
  if (!verdict.empty())
    throw Error(fmt::format("{} differs between rank 0 and rank(s) {}", what, verdict),
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
