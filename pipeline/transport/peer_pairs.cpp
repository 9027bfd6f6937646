#include "pipeline/transport/peer_pairs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <utility>

namespace antichain {
namespace {

// Every rank's lines, by rank. Each rank gives equally many.
std::vector<std::vector<std::string>> share_lines(Job& job, std::vector<std::string> mine) {
  for (std::string& line : mine) std::ranges::replace(line, '\n', ' ');
  std::string all;
  for (const std::string& of_rank : job.gather(fmt::format("{}\n", fmt::join(mine, "\n")))) all += of_rank;
  std::istringstream in(job.broadcast(std::move(all)));
  std::vector<std::vector<std::string>> lines(size_t(job.size()), mine);
  for (auto& of_rank : lines)
    for (std::string& line : of_rank) std::getline(in, line);
  return lines;
}

}  // namespace

PeerPairs::PeerPairs(std::vector<std::string> hosts, const std::vector<std::vector<std::string>>& why_not)
    : hosts_(std::move(hosts)), direct_(hosts_.size(), std::vector<bool>(hosts_.size())) {
  int others = -1;
  for (size_t a = 0; a < hosts_.size(); ++a)
    for (size_t b = 0; b < a; ++b) {
      if (hosts_[a] != hosts_[b]) continue;
      direct_[a][b] = direct_[b][a] = why_not[a][b].empty() && why_not[b][a].empty();
      if (direct_[a][b] || ++others > 0) continue;
      const auto [from, to] = why_not[a][b].empty() ? std::pair(b, a) : std::pair(a, b);
      exception_ = fmt::format("rank {} on {} can't write to rank {}'s device ({})", from, hosts_[a], to,
                               why_not[from][to]);
    }
  if (others > 0) exception_ += fmt::format(", and so with {} more pair{}", others, others > 1 ? "s" : "");
}

bool PeerPairs::any() const {
  return std::ranges::any_of(direct_, [](const auto& row) { return std::ranges::count(row, true) > 0; });
}

bool PeerPairs::all() const {
  const auto full = [this](const auto& row) { return std::ranges::count(row, true) + 1 == ssize(direct_); };
  return std::ranges::all_of(direct_, full);
}

bool PeerPairs::one_host() const {
  return std::ranges::all_of(hosts_, [&](const std::string& host) { return host == hosts_[0]; });
}

PeerPairs find_pairs(Job& job, PeerStream& peers) {
  job.activity().doing("finding out which ranks can write to each other's devices");
  const auto known = share_lines(job, {job.host(), peers.introduction()});
  std::vector<std::string> hosts, why_not;
  for (int peer = 0; peer < job.size(); ++peer) {
    const auto& [host, introduction] = std::pair(known[size_t(peer)][0], known[size_t(peer)][1]);
    hosts.push_back(host);
    const bool tries = peer != job.rank() && host == job.host();
    why_not.push_back(tries ? peers.reach(peer, introduction) : "");
  }
  return {hosts, share_lines(job, why_not)};
}

}  // namespace antichain
